// Unit tests of [origin.request.headers]: which fields may be set, where their values come from, and what is shown.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "config_helpers.h"
#include "proxy/config/diff.h"
#include "proxy/config/print.h"
#include "proxy/config/secret.h"

namespace carpool::proxy::config {
namespace {

// An origin with these lines in its table of fields.
std::string with(const std::string& lines, const std::string& uri = "https://a.test") {
  return "[[origin]]\nuri = \"" + uri + "\"\n[origin.request.headers]\n" + lines;
}

class CredentialFile : public testing::Test {
 protected:
  CredentialFile() : path_(std::filesystem::temp_directory_path() / ("carpool-secret-" + std::to_string(::getpid()))) {}
  ~CredentialFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  Secret secret(const std::string& prefix = {}) const { return {{}, path_, prefix}; }

  const std::filesystem::path path_;
};

TEST(SetFields, AreTextsWithVariables) {
  const Env env = [](std::string_view name) { return std::optional<std::string>("<" + std::string(name) + ">"); };
  const Reading reading = read_text(with("Authorization = \"Bearer ${T}\"\nX-Api-Key = \"k\"\n"), "c.toml", env);
  ASSERT_EQ(errors_of(reading), "");
  const std::vector<SetField>& fields = reading.config.origins.at(0).headers;
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0], (SetField{"Authorization", {"Bearer <T>", {}, {}}}));
  EXPECT_EQ(fields[1], (SetField{"X-Api-Key", {"k", {}, {}}}));
}

TEST(SetFields, BelongToSingleOrigins) {
  expect_error("[request.headers]\nX-A = \"b\"\n", "1:10: request.headers:", "expected in [origin.request.headers]");
}

TEST(SetFields, AreRefusedWithTheirPlaceAndWithoutTheirValue) {
  struct Case {
    const char *line, *says;
  };
  for (const Case& one : {Case{"Host = \"planted\"", "describes the route"},
                          {"Proxy-Authorization = \"planted\"", "belongs to one connection"},
                          {"\":path\" = \"planted\"", "is a pseudo-header field"},
                          {"\"a b\" = \"planted\"", "is not a field name"},
                          {"X-A = \"planted\\r\\nX: y\"", "line end"},
                          {"X-A = \" planted\"", "white space around it"},
                          {"X-A = 5", "is not text"},
                          {"X-A = \"\"", "is empty"},
                          {"X-A = { hidden = true }", "is hidden"},
                          {"X-A = { text = \"planted\" }", "has the key"},
                          {"X-A = { prefix = \"planted\" }", "names no file"},
                          {"X-A = { file = \"/nonexistent\" }", "/nonexistent cannot be read: No such file"},
                          {"X-A = { file = \"/dev/zero\" }", "/dev/zero cannot be read: is not a regular file"}}) {
    expect_error(with(one.line), "4:", one.says);
    EXPECT_EQ(errors(with(one.line)).find("planted"), std::string::npos) << one.line;
  }
  expect_error(with("X-A = \"b\"\nx-a = \"c\"\n"), "5:7: origin.request.headers.x-a:", "is set twice");
}

TEST(SetFields, WithoutQuotesAreRefusedWithoutTheirValue) {
  expect_error(with("X-Api-Key = planted_7\n"), "4:13: syntax:", "is a text without quotes");
  const std::string number = "98765432109876543210987";
  expect_error(with("X-Api-Key = " + number + "\n"), "4:", "syntax:");
  for (const std::string& line : {std::string("X-Api-Key = planted_7\n"), "X-Api-Key = " + number + "\n"}) {
    const std::string all = errors(with(line));
    EXPECT_EQ(all.find("planted"), std::string::npos) << all;
    EXPECT_EQ(all.find("98765"), std::string::npos) << all;
  }
}

TEST(Errors, NeverShowThePasswordOfAUrl) {
  for (const char* line :
       {"upstream.proxy = \"http://user:planted@proxy:3128\"", "upstream.proxy = \"socks5://u:planted@p\"",
        "upstream.proxy = \"http://u:planted/7@p\"", "otlp.endpoint = \"http://u:planted/7@p/v1\"",
        "admin.address = \"u:planted@127.0.0.1:1\"", "egress.deny = [\"u:planted@p\"]"}) {
    const std::string all = errors(std::string(line) + '\n');
    EXPECT_NE(all.find("expected"), std::string::npos) << line << '\n' << all;
    EXPECT_EQ(all.find("planted"), std::string::npos) << line << '\n' << all;
  }
}

TEST(ATextInPlaceOfATable, IsNotShown) {
  const std::string origin = "[[origin]]\nuri = \"https://a.test\"\n";
  for (const char* line : {"request.headers", "oauth2", "request"}) {
    const std::string all = errors(origin + line + " = \"Bearer planted\"\n");
    EXPECT_NE(all.find("is a text, expected a table [origin."), std::string::npos) << all;
    EXPECT_EQ(all.find("planted"), std::string::npos) << all;
  }
}

TEST(SetFields, AreBoundedInNumberAndLength) {
  std::string many;
  for (int i = 0; i < 32; ++i) many += "X-" + std::to_string(i) + " = \"v\"\n";
  good(with(many));
  expect_error(with(many + "X-32 = \"v\"\n"), "3:", "has 33 fields, expected at most 32");
  expect_error(with("X-A = \"" + std::string(8193, 'v') + "\"\n"), "4:", "is longer than 8192 bytes");
  const std::string half = " = \"" + std::string(4096, 'v') + "\"\n";
  expect_error(with("X-A" + half + "X-B" + half), "3:", "has more than 8KiB together");
}

TEST(SetFields, NeedAnOriginThatNobodyElseCanRead) {
  good(with("X-A = \"b\"\n", "http://127.0.0.1:8080"));
  good(with("X-A = \"b\"\n", "http://localhost"));
  expect_error(with("X-A = \"b\"\n", "http://a.test"), "3:", "expected https, a loopback address or a Unix socket");
  expect_error(with("X-A = \"b\"\n", "http://127.example"),
               "3:", "expected https, a loopback address or a Unix socket");
  expect_error(with("X-A = \"b\"\n", "tcp://a.test:1"), "3:", "does not apply to a tcp origin");
  expect_error(with("X-A = \"b\"\n[origin.upstream.tls]\nverify = false\n"), "3:", "verify = false");
  expect_error("upstream.tls.verify = false\n" + with("X-A = \"b\"\n"), "4:", "verify = false");
}

TEST_F(CredentialFile, AndTextsAreHiddenInWhatIsPrintedAndCompared) {
  write("planted");
  const Config config = good(with("X-A = \"planted\"\nX-B = { file = \"" + path_.string() + "\" }\n"));
  const Config other = good(with("X-A = \"planted too\"\n"));
  const std::string text = print_config(config);
  EXPECT_NE(text.find("\"X-A\" = { hidden = true }\n"), std::string::npos) << text;
  EXPECT_NE(errors(text).find("is hidden"), std::string::npos) << "a printed configuration is not used by mistake";
  std::string compared;
  for (const Change& change : diff(config, other)) compared += change.key + ' ' + change.from + ' ' + change.to + '\n';
  EXPECT_NE(compared.find("origin https://a.test: request.headers.X-A { hidden"), std::string::npos) << compared;
  EXPECT_NE(compared.find("request.headers.X-B { file"), std::string::npos) << compared;
  EXPECT_EQ((text + compared).find("planted"), std::string::npos);
}

TEST_F(CredentialFile, IsReadWithoutItsLastLineEnd) {
  write("value\r\n\n");
  EXPECT_EQ(*value_of(secret()), "value");
  EXPECT_EQ(*value_of(secret("Bearer ")), "Bearer value");
}

TEST_F(CredentialFile, IsNeitherEmptyNorLongerThanAValueMayBe) {
  EXPECT_NE(value_of(secret()).fault().detail.find("cannot be read"), std::string::npos);
  write(" \n");
  EXPECT_EQ(value_of(secret()).fault().detail, path_.string() + " is empty");
  write(std::string(8192, 'v'));
  EXPECT_EQ(value_of(secret())->size(), 8192U);
  EXPECT_EQ(value_of(secret("x")).fault().detail, path_.string() + " is longer than 8192 bytes");
}

TEST(ASecretInAQuery, IsShownNeitherInAPrintedConfigurationNorInAChange) {
  const auto text = [](const std::string& secret) {
    return "pool.health_check.probe = \"GET /up?a=1&key=" + secret + "\"\n[[origin]]\nuri = \"https://a.test\"\n" +
           "[origin.oauth2]\ntoken_url = \"https://b.test/t?a=1&code=" + secret + "\"\nclient_id = \"c\"\n" +
           "client_secret = \"s\"\n";
  };
  const Config before = good(text("planted")), after = good(text("planted-2"));
  const std::string printed = print_config(before);
  EXPECT_EQ(printed.find("planted"), std::string::npos) << printed;
  EXPECT_NE(printed.find("probe = \"GET /up?a=1&key=***\""), std::string::npos) << printed;
  EXPECT_NE(printed.find("token_url = \"https://b.test/t?a=1&code=***\""), std::string::npos) << printed;
  const std::vector<Change> changes = diff(before, after);
  ASSERT_EQ(changes.size(), 2U);
  for (const Change& change : changes)
    EXPECT_EQ((change.from + change.to).find("planted"), std::string::npos) << change.key;
  expect_error("pool.health_check.probe = \"GET /up?key=***\"\n", "1:27: pool.health_check.probe:", "is hidden");
  expect_error("pool.health_check.probe = \"GET up?key=planted\"\n", "1:27: pool.health_check.probe:", "`up?key=***`");
}

}  // namespace
}  // namespace carpool::proxy::config
