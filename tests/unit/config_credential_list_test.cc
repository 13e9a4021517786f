// Unit tests of a list of credentials: the meaning of its lines and the text of its errors.
#include "proxy/config/credential.h"

#include "tests/unit/config_helpers.h"

namespace carpool::proxy::config {
namespace {

const std::string kDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";  // of "test"

std::string errors_in(const std::string& text) {
  std::string all;
  for (const std::string& error : parse_credentials(text, "users").errors) all += error + '\n';
  return all;
}

TEST(CredentialList, AreALineEach) {
  const CredentialList list = parse_credentials("# comment\n\nbasic alice " + kDigest + "\r\n  bearer ci-1\t" +
                                                    kDigest + "  \n   # another\nbasic alice " + std::string(64, 'A'),
                                                "users");
  EXPECT_TRUE(list.errors.empty()) << list.errors.front();
  ASSERT_EQ(list.credentials.size(), 3U);
  EXPECT_EQ(list.credentials[0].scheme, CredentialScheme::basic);
  EXPECT_EQ(list.credentials[0].name, "alice");
  EXPECT_EQ(list.credentials[0].digest[0], 0x9F);
  EXPECT_EQ(list.credentials[0].digest[31], 0x08);
  EXPECT_EQ(list.credentials[1].scheme, CredentialScheme::bearer);
  EXPECT_EQ(list.credentials[1].name, "ci-1");
  EXPECT_EQ(list.credentials[2].digest[5], 0xAA);
}

TEST(CredentialList, OfEachWrongLineAreNamedWithoutTheirText) {
  const std::string all =
      errors_in("basic alice " + kDigest + "\nalice:planted\nbasic alice planted\nbasic a:planted " + kDigest +
                "\nbearer ci " + kDigest + " planted\nbasic alice " + kDigest + "\nbasic\n" + "digest a " + kDigest +
                "\nbasic " + std::string(129, 'n') + ' ' + kDigest + "\nbasic a " + std::string(63, 'a') + "g\n");
  EXPECT_EQ(all.find("planted"), std::string::npos) << all;
  for (const char* text :
       {"users:2: unknown scheme, expected `basic NAME SHA256` or `bearer NAME SHA256`\n",
        "users:3: no SHA-256 after the name, expected 64 hexadecimal digits", "users:4: the name is",
        "users:5: more than three words", "users:6: repeats line 1, expected each credential once\n",
        "users:7: the name is", "users:8: unknown scheme", "users:9: the name is", "users:10: no SHA"}) {
    EXPECT_NE(all.find(text), std::string::npos) << text << "\n--\n" << all;
  }
  EXPECT_EQ(all.find("users:1:"), std::string::npos) << all;
}

TEST(CredentialList, AreBounded) {
  std::string many;
  for (int i = 0; i < 1200; ++i) many += "#\n";
  EXPECT_EQ(errors_in(many), "users:1001: more lines than carpool reads, expected at most 1000\n");
  EXPECT_EQ(errors_in("# none\n"), "users: lists no credentials, expected at least one\n");
  EXPECT_EQ(errors_in(""), "users: lists no credentials, expected at least one\n");
  const CredentialList absent = read_credentials("/nowhere/users");
  ASSERT_EQ(absent.errors.size(), 1U);
  EXPECT_NE(absent.errors[0].find("/nowhere/users: cannot be read: No such file"), std::string::npos);
  const CredentialList endless = read_credentials("/dev/zero");
  ASSERT_EQ(endless.errors.size(), 1U);
  EXPECT_NE(endless.errors[0].find("is not a regular file"), std::string::npos) << endless.errors[0];
}

TEST(CredentialList, InPlainTextAreWarnedOf) {
  const auto warnings = [](std::string_view listen) {
    const Reading reading = read_toml("[[listen]]\ncredentials_file = \"/dev/null\"\naddress = " + std::string(listen));
    EXPECT_EQ(errors_of(reading), "") << listen;
    return reading.warnings.size();
  };
  EXPECT_EQ(warnings(R"("127.0.0.1:3128")"), 0U);
  EXPECT_EQ(warnings(R"("unix:/run/x.sock")"), 0U);
  EXPECT_EQ(warnings(R"("0.0.0.0:3128")"), 1U);
  EXPECT_EQ(warnings("\"0.0.0.0:3128\"\ncert_file = \"/dev/null\"\nkey_file = \"/dev/null\""), 0U);
}

}  // namespace
}  // namespace carpool::proxy::config
