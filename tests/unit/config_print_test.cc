// Unit tests of printed configurations: they read back unchanged, and the generated files are up to date.
// CARPOOL_UPDATE_GOLDEN=1 config_tests --gtest_filter='Generated.*' rewrites them.
#include "proxy/config/print.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "config_helpers.h"
#include "config_reference.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {
namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The file equals `text`, from the first line that contains `mark` on ("": from the beginning).
void expect_file(const std::string& name, const std::string& mark, const std::string& text) {
  const std::string path = CARPOOL_SOURCE_DIR "/" + name;
  const std::string now = slurp(path);
  std::size_t start = 0;
  if (!mark.empty()) {
    start = now.find(mark);
    ASSERT_NE(start, std::string::npos) << name << " lost its mark";
    start = now.find('\n', start) + 1;
  }
  if (std::getenv("CARPOOL_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << now.substr(0, start) << text;
    return;
  }
  EXPECT_EQ(now.substr(start), text) << name << " is out of date";
}

TEST(Generated, DefaultConfigIsTheFileAtTheRoot) {
  expect_file("config.toml", "", print_default_config());
}
TEST(Generated, ReferenceIsInTheDocuments) {
  expect_file("docs/configuration.md", "<!-- Generated", print_reference());
}
TEST(Generated, SchemaIsWhatItWas) {
  expect_file("tests/golden/config.schema.json", "", print_schema());
}

TEST(DefaultConfig, ReadsAsTheDefaults) {
  EXPECT_EQ(good(print_default_config()), Config{});
}

TEST(DefaultConfig, LeavesOutRareSettingsWhichTheReferenceHas) {
  const std::string file = print_default_config(), reference = print_reference();
  std::size_t rare = 0;
  for (const Section& section : sections()) {
    std::size_t usual = section.fields ? 1 : 0;
    for (const Setting& setting : section.settings) {
      EXPECT_NE(reference.find("| `" + std::string(setting.key) + "` |"), std::string::npos) << setting.key;
      ++(setting.usual ? usual : rare);
    }
    EXPECT_NE(usual, 0U) << "a table without a setting: " << section.path;
  }
  EXPECT_GT(rare, 0U);
  EXPECT_EQ(file.find("max_evict_count"), std::string::npos);
  EXPECT_NE(file.find("max_retries"), std::string::npos);
}

// The examples in comments are valid too, except beside other kinds of tables or addresses, and on a system that lacks
// their files and groups.
TEST(DefaultConfig, HasExamplesThatAreRight) {
  std::string text = print_default_config();
  for (std::size_t at = 0; (at = text.find("\n# ", at)) != std::string::npos;) {
    const std::size_t end = text.find('\n', at + 1);
    const std::string line = text.substr(at + 3, end - at - 3);
    const bool setting = line.starts_with("[") || line.find(" = ") < 24;
    if (setting) text.erase(at + 1, 2);
    at = setting ? end - 2 : end;
  }
  for (const ConfigError& error : read_toml(text).errors) {
    const auto says = [&](const char* part) { return error.text.find(part) != std::string::npos; };
    EXPECT_TRUE(says("applies to single origins") || says("cannot be read") || says("cannot be created") ||
                says("is set beside log.file") || says("the system has no group") || says(R"(expected "unix:/path")") ||
                says("is set without proxy"))
        << error.line_text();
  }
}

const char* const kRich = R"(
workers = 3
drain_delay = "1500ms"
[[listen]]
address = "127.0.0.1:0"
max_body = "3GiB"
[[listen]]
address = "unix:/run/a \"b\" $${c}.sock"
origin = "https://api.example.com"
[admin]
address = "unix:/run/admin.sock"
[pool]
size = 1
[pool.total]
max_connections = 20000
[upstream]
protocols = ["h1"]
proxy = "http://parent:3128"
proxy_credentials = { file = "PAIR" }
[upstream.tls]
server_name = "origin.test"
[egress]
allow = ["*.example.com:443"]
[[origin]]
uri = "https://B\u00FCcher.example:443/"
alias = ["api", "[::1]"]
addresses = ["127.0.0.1:8443"]
[origin.pool]
size = 9
[origin.pool.warm_up]
size = 9
[origin.request]
timeout = "7s"
[origin.upstream.tls]
verify = false
[[origin]]
uri = "http://plain"
upstream.proxy = ""
[[origin]]
uri = "tcp://database:5432"
pool.size = 7
upstream.proxy = ""
)";

TEST(PrintConfig, ReadsBackAsTheSame) {
  const std::string pair = testing::TempDir() + "carpool_user_and_password";
  std::ofstream(pair) << "user:password\n";
  std::string rich = kRich;
  rich.replace(rich.find("PAIR"), 4, pair);
  for (const std::string& text : {std::string(), rich, print_default_config()}) {
    const Config config = good(text);
    EXPECT_EQ(good(print_config(config)), config) << print_config(config);
    EXPECT_EQ(print_config(good(print_config(config))), print_config(config));
  }
}

TEST(PrintConfig, KeepsTheSizeOfTcpOriginsThatAWrittenSizeWouldReplace) {
  const std::string unset = print_config(good("[[origin]]\nuri = \"tcp://a:1\"\n"));
  EXPECT_NE(unset.find("[pool]\nsize = 64\n"), std::string::npos) << unset;
  EXPECT_NE(unset.find("\ntcp_size = \"auto\"\n"), std::string::npos) << unset;
  EXPECT_EQ(good(unset).origins.at(0).pool.tcp_size, kAutomatic);
  EXPECT_EQ(good(print_default_config()).pool.tcp_size, kAutomatic);
}

TEST(TheSizeOfATcpOrigin, IsTheOneThatItsTableOrElseAllPoolsHave) {
  const auto of = [](const std::string& all, const std::string& own) {
    return good(all + "\n[[origin]]\nuri = \"tcp://a:1\"\n" + own + "[[origin]]\nuri = \"http://b\"\npool.size = 5\n")
        .origins.at(0)
        .pool.tcp_size;
  };
  EXPECT_EQ(of("", ""), kAutomatic);
  EXPECT_EQ(of("pool.size = 64", ""), 0U);
  EXPECT_EQ(of("pool = { size = 64, tcp_size = 500 }", ""), 500U);
  EXPECT_EQ(of("pool = { size = 64, tcp_size = 500 }", "pool.size = 7\n"), 0U);
  EXPECT_EQ(of("pool.size = 64", "pool.tcp_size = \"auto\"\n"), kAutomatic);
  EXPECT_EQ(of("pool.tcp_size = 3", "pool.size = 7\npool.tcp_size = 9\n"), 9U);
}

TEST(PrintConfig, FillsInEveryDefault) {
  const std::string text = print_config(good("workers = 2"));
  for (const auto line : {"workers = 2\n", "[pool.warm_up]\nenabled = false\n", "idle_timeout = \"60s\"\n",
                          "protocols = [\"h2\", \"h1\"]\n", "max_target = \"16KiB\"\n", "expire_time = \"30m\"\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace carpool::proxy::config
