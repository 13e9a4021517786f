// Unit tests of reading a configuration: types, overrides, and the location of every error.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "config_helpers.h"
#include "proxy/config/cores.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {
namespace {

TEST(Read, TakesAnEmptyFileAsTheDefaults) {
  EXPECT_EQ(good(""), Config{});
}

TEST(Read, TellsWhereALetterStandsThatMayNotStandThere) {
  expect_error("[pool]\nsize = 3\u00e9\n", "2:", "");
  expect_error("[pool]\nsize = 3 \u0499\n", "2:", "");
  good("# \u00e9\n[admin]\naddress = \"\"\"\\\n\u00a0unix:/tmp/x\"\"\" # \u0499\n");
}

TEST(Read, TakesEveryKindOfValue) {
  const Config config = good(R"(
workers = 4
shutdown_grace = "1500ms"
[[listen]]
address = "[::1]:3128"
origin = "HTTPS://Api.Example.com:443/"
max_header_bytes = "8KiB"
connect = false
[[listen]]
address = "unix:/run/carpool/proxy.sock"
[pool]
size = 7
reuse = "never"
[pool.total]
max_connections = 20_000
[upstream]
protocols = ["h1"]
tls.min_version = "1.3"
[egress]
default = "deny"
allow = ["*.example.com:443", "10.0.0.0/8"]
[log]
level = "warn"
format = "text"
)");
  EXPECT_EQ(config.workers, 4U);
  EXPECT_EQ(config.shutdown_grace, milliseconds(1500));
  ASSERT_EQ(config.listen.size(), 2U);
  EXPECT_EQ(config.listen[0].address, "[::1]:3128");
  EXPECT_EQ(config.listen[0].origin, "https://api.example.com");
  EXPECT_EQ(config.listen[0].max_header_bytes, 8192U);
  EXPECT_FALSE(config.listen[0].connect);
  EXPECT_TRUE(config.listen[1].connect);
  EXPECT_EQ(config.listen[1].address, "unix:/run/carpool/proxy.sock");
  EXPECT_EQ(config.pool.size, 7U);
  EXPECT_EQ(config.pool.reuse, Reuse::never);
  EXPECT_EQ(config.pool_total.max_connections, 20000U);
  EXPECT_EQ(config.upstream.protocols, std::vector<std::string>{"h1"});
  EXPECT_EQ(config.upstream.tls.min_version, TlsVersion::tls13);
  EXPECT_EQ(config.egress.default_, EgressAction::deny);
  EXPECT_EQ(config.egress.allow.size(), 2U);
  EXPECT_EQ(config.log.level, LogLevel::warn);
  EXPECT_EQ(config.log.format, LogFormat::text);
}

TEST(Read, TakesAutoWorkersAsTheCoresThatAreGranted) {
  EXPECT_EQ(good("workers = \"auto\"").workers, granted_cores());
}

TEST(Read, GivesAnOriginTheSectionsAndItsOverrides) {
  const Config config = good(R"(
[[origin]]
uri = "https://API.example.com:443/"
alias = ["API", "api.example.com."]
addresses = ["127.0.0.1:8443", "[0:0::1]:8443"]
[origin.pool]
size = 3
[origin.pool.health_check]
enabled = false
[origin.request]
timeout = "1s"
[origin.upstream.tls]
verify = false
[[origin]]
uri = "http://b"
# Written after the origins, and still below them.
[pool]
max_waiting = 9
wait_timeout = "9s"
[request]
idle_timeout = "9s"
)");
  ASSERT_EQ(config.origins.size(), 2U);
  const OriginSettings& a = config.origins[0];
  EXPECT_EQ(a.origin.label(), "https://api.example.com");
  EXPECT_EQ(a.alias, (std::vector<std::string>{"api", "api.example.com"}));
  EXPECT_EQ(a.addresses, (std::vector<std::string>{"127.0.0.1:8443", "[::1]:8443"}));
  EXPECT_EQ(a.pool.size, 3U);
  EXPECT_EQ(a.pool.max_waiting, 9U);
  EXPECT_EQ(a.pool.wait_timeout, seconds(9));
  EXPECT_FALSE(a.pool.health_check.enabled);
  EXPECT_EQ(a.request.timeout, seconds(1));
  EXPECT_EQ(a.request.idle_timeout, seconds(9));
  EXPECT_FALSE(a.upstream.tls.verify);
  const OriginSettings& b = config.origins[1];
  EXPECT_EQ(b.pool, config.pool);
  EXPECT_EQ(b.request, config.request);
  EXPECT_EQ(b.upstream, config.upstream);
}

TEST(Read, NumbersTlsIdentitiesByWhatTheyAre) {
  const Config config = good(R"(
[[origin]]
uri = "https://a"
[[origin]]
uri = "https://b"
upstream.tls.server_name = "x"
[[origin]]
uri = "https://c"
upstream.tls.server_name = "y"
[[origin]]
uri = "https://d"
upstream.tls.server_name = "X."
[[origin]]
uri = "http://e"
upstream.tls.server_name = "y"
)");
  std::vector<std::uint32_t> numbers;
  for (const auto& origin : config.origins) numbers.push_back(origin.origin.tls);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 1, 0}));
}

TEST(Read, FitsAWarmUpThatNobodyWroteToThePool) {
  const Config config = good("pool.size = 1\n[[origin]]\nuri = \"http://a\"\npool.size = 50\n");
  EXPECT_EQ(config.pool.warm_up.size, 1U);
  EXPECT_EQ(config.origins[0].pool.warm_up.size, 2U);
}

TEST(Read, ReplacesVariablesInStringsOnly) {
  const auto env = [](std::string_view name) -> std::optional<std::string> {
    return name == "PORT" ? std::optional<std::string>("4000") : std::nullopt;
  };
  const Reading reading =
      read_text("shutdown_grace = \"${GRACE:-3s}\"\n[[listen]]\naddress = \"127.0.0.1:${PORT}\"\n", "c.toml", env);
  EXPECT_EQ(errors_of(reading), "");
  EXPECT_EQ(reading.config.listen[0].address, "127.0.0.1:4000");
  EXPECT_EQ(reading.config.shutdown_grace, seconds(3));
  expect_error("[[listen]]\naddress = \"127.0.0.1:${PORT}\"\n", "2:11: listen.address:", "PORT is not set");
  expect_error("[egress]\nallow = [\"${NO}\"]\n",
               "2:10: egress.allow:", "item 1: the environment variable NO is not set");
}

Env env_with(std::map<std::string, std::string, std::less<>> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Read, TakesAVariableForANumberAFlagAndAPort) {
  const Env env = env_with({{"N", "7"}, {"YES", "true"}, {"PORT", "8443"}, {"CORES", "auto"}, {"BAD", "7x"}});
  const Reading reading = read_text(
      "workers = \"${CORES}\"\npool.size = \"${N}\"\npool.max_usage = \"1${N}\"\npool.maximize = \"${YES}\"\n"
      "log.access = \"${NO:-false}\"\n[[listen]]\nconnect_ports = [443, \"${PORT}\"]\n",
      "c.toml", env);
  EXPECT_EQ(errors_of(reading), "");
  EXPECT_EQ(reading.config.workers, granted_cores());
  EXPECT_EQ(reading.config.pool.size, 7U);
  EXPECT_EQ(reading.config.pool.max_usage, 17U);
  EXPECT_TRUE(reading.config.pool.maximize);
  EXPECT_FALSE(reading.config.log.access);
  EXPECT_EQ(reading.config.listen[0].connect_ports, (std::vector<std::uint16_t>{443, 8443}));
  const auto wrong = [&env](std::string_view text) { return errors_of(read_text(text, "c.toml", env)); };
  EXPECT_EQ(wrong("pool.size = \"${BAD}\""),
            "c.toml:1:13: pool.size: is \"7x\", expected an integer from 1 to 100000, or \"auto\"\n");
  EXPECT_EQ(wrong("pool.maximize = \"${N}\""), "c.toml:1:17: pool.maximize: is \"7\", expected true or false\n");
  EXPECT_NE(wrong("pool.size = \"$${N}\""), "") << "an escaped variable is a text";
  EXPECT_NE(wrong("pool.size = \"7\""), "") << "as is a number in quotes";
}

TEST(Read, TakesRelativePathsAsBesideTheFile) {
  namespace fs = std::filesystem;
  std::string pattern = fs::temp_directory_path() / "carpool-read-XXXXXX";
  const fs::path folder = mkdtemp(pattern.data());
  fs::create_directories(folder / "conf/ca");
  std::ofstream(folder / "conf/ca.pem") << "x";
  std::ofstream(folder / "secret") << "x";
  std::ofstream(folder / "conf/c.toml") << "upstream.tls.ca_file = \"ca.pem\"\nintercept.ca_dir = \"./ca\"\n"
                                           "[[origin]]\nuri = \"https://a\"\n[origin.request.headers]\n"
                                           "X-Key = { file = \"../secret\" }\n";
  const Reading reading = read_file((folder / "conf/c.toml").string(), no_env());
  EXPECT_EQ(errors_of(reading), "");
  EXPECT_EQ(reading.config.upstream.tls.ca_file, folder / "conf/ca.pem");
  EXPECT_EQ(reading.config.intercept.ca_dir, folder / "conf/ca");
  EXPECT_EQ(reading.config.origins.at(0).headers.at(0).value.file, folder / "secret");
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  const Reading from_here = read_file("conf/c.toml", no_env());
  fs::current_path(before);
  EXPECT_EQ(errors_of(from_here), "");
  EXPECT_EQ(from_here.config.upstream.tls.ca_file, fs::canonical(folder) / "conf/ca.pem");
  fs::remove_all(folder);
}

TEST(Errors, AreAllReportedAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(
      errors(R"([pool]
sise = 3
wait_timeout = 30
size = 0
[log]
level = "wrn"
)"),
      "c.toml:2:1: pool.sise: is not known, expected a key of [pool]; did you mean `size`?\n"
      "c.toml:3:16: pool.wait_timeout: is the integer 30, expected a duration such as \"250ms\", \"30s\", \"10m\" or "
      "\"1h\": write \"30s\" or \"30ms\"\n"
      "c.toml:4:8: pool.size: is the integer 0, expected an integer from 1 to 100000, or \"auto\"\n"
      "c.toml:6:9: log.level: is \"wrn\", expected one of \"trace\", \"debug\", \"info\", \"warn\", \"error\", "
      "\"off\"; did "
      "you mean \"warn\"?\n");
}

TEST(Errors, NameTheNearestKey) {
  expect_error("worker = 2", "1:1: worker:", "did you mean `workers`?");
  expect_error("[[lisen]]\n", "1:3: lisen:", "did you mean `listen`?");
  expect_error("[pol]\nsize = 1\n", "1:2: pol:", "did you mean `pool`?");
  expect_error("[[origin]]\nuri = \"http://a\"\n[origin.tls]\n",
               "3:9: origin.tls:", "there is a section [origin.upstream.tls]");
  expect_error("[pool.warmup]\n", "1:7: pool.warmup:", "did you mean `warm_up`?");
  expect_error("[[origin]]\nuri = \"http://a\"\n[origin.pools]\n", "3:9: origin.pools:", "did you mean `pool`?");
  expect_error("[[origin]]\nuri = \"http://a\"\n[origin.pool]\nsizes = 1\n",
               "4:1: origin.pool.sizes:", "did you mean `size`?");
  expect_error("ca_file = \"x\"\n", "1:1: ca_file:", "there is one in [upstream.tls]");
  expect_error("nonsense = 1\n", "1:1: nonsense:", "expected a key of the top level");
}

TEST(Errors, NameTheTableThatAKeyWasMeantFor) {
  const std::string a = "[[origin]]\nuri = \"http://a\"\n";
  expect_error(a + "size = 3\n", "3:1: origin.size:", "there is one in [origin.pool], [origin.pool.warm_up]");
  expect_error(a + "[origin.pool]\ntimeout = \"3s\"\n",
               "4:1: origin.pool.timeout:", "expected a key of [origin.pool]; there is one in [origin.request]");
  expect_error("[request]\nwait_timeout = \"3s\"\n", "2:1: request.wait_timeout:", "there is one in [pool]");
  expect_error("[pool]\nworkers = 2\n", "2:1: pool.workers:", "at the top of the file, before the first [table]");
  expect_error("preserve_host = true\n", "1:1: preserve_host:", "there is one in [[listen]]");
  expect_error("[egress]\nmax_waitin = 3\n",
               "2:1: egress.max_waitin:", "did you mean `max_waiting`? there is one in [pool]");
  expect_error("[warm_up]\nenabled = true\n", "1:2: warm_up:", "there is a section [pool.warm_up]");
}

TEST(Errors, SayWhereASectionBelongs) {
  const std::string a = "[[origin]]\nuri = \"http://a\"\n";
  expect_error(a + "[origin.admin]\nenabled = true\n", "3:9: origin.admin:", "expected in [admin]");
  expect_error(a + "[origin.pool.total]\n", "3:14: origin.pool.total:", "expected in [pool.total]");
  expect_error(a + "[[origin.listen]]\n", "3:10: origin.listen:", "expected at the top");
  expect_error("[listen]\naddress = \"127.0.0.1:1\"\n", "1:2: listen:", "[[listen]]");
  expect_error("origin = 3\n", "1:1: origin:", "[[origin]]");
  expect_error("pool = 3\n", "1:1: pool:", "is the integer 3, expected a table [pool]");
  expect_error("[[pool]]\nsize = 3\n", "1:3: pool:", "is a list, expected a table [pool]");
  expect_error("[[origin]]\n[origin.pool]\nsize = 3\n", "1:1: origin.uri:", "is missing");
  for (const char* const empty : {"\"\"", "\"${NO:-}\""}) {
    expect_error(std::string("[[origin]]\nuri = ") + empty + "\nalias = [\"api\"]\n", "2:7: origin.uri:", "is missing");
  }
}

TEST(Errors, ShowAKeyThatWouldEndTheirLineOrControlATerminal) {
  expect_error("\"a\\nb\\u001b\" = 1\n", "1:", ": a\\u000Ab\\u001B: is not known");
}

TEST(Read, TakesAnEmptyListOfTablesAsAnOmittedOne) {
  EXPECT_EQ(good("origin = []\nlisten = []\n"), Config{});
}

TEST(Errors, NameTheTypeThatIsExpected) {
  expect_error("workers = \"many\"", "1:11: workers:", "is \"many\", expected an integer from 1 to 128, or \"auto\"");
  expect_error("workers = 1.5", "1:11: workers:", "is a number with a fraction");
  expect_error("workers = 1979-05-27", "1:11: workers:", "is a date or time");
  expect_error("workers = 129", "1:11: workers:", "1 to 128");
  expect_error("pool.size = \"3\"", "1:13: pool.size:", "or \"auto\": write 3 without quotes");
  expect_error("pool.size = \"0\"",
               "1:13: pool.size:", "is \"0\", expected an integer from 1 to 100000, or \"auto\"\n");
  expect_error("pool.max_usage = -1", "1:18: pool.max_usage:", "is the integer -1");
  expect_error("pool.max_usage = 9999999999999", "1:18: pool.max_usage:", "0 to 1048575");
  expect_error("metrics.enabled = 1", "1:19: metrics.enabled:", "expected true or false");
  expect_error("drain_delay = \"5\"", "1:15: drain_delay:", "or \"1h\": write \"5s\" or \"5ms\"\n");
  expect_error("drain_delay = []", "1:15: drain_delay:", "is a list, expected a duration");
  expect_error("pool.wait_timeout = \"0s\"", "1:21: pool.wait_timeout:", "more than 0s");
  for (const char* const wrong : {"\"99ms\"", "\"2h\""}) {
    expect_error(std::string("otlp.interval = ") + wrong, "1:17: otlp.interval:", "expected 100ms to 1h");
  }
  expect_error("request.replay_buffer = 65536", "1:25: request.replay_buffer:", "write \"64KiB\"");
  expect_error("request.replay_buffer = \"64KB\"", "1:25: request.replay_buffer:", "or \"1MiB\": write \"64KiB\"\n");
  expect_error("request.replay_buffer = \"2m\"", "1:25: request.replay_buffer:", "or \"1MiB\": write \"2MiB\"\n");
  expect_error("request.replay_buffer = \"64KX\"", "1:25: request.replay_buffer:", "or \"1MiB\"\n");
  expect_error("request.replay_buffer = \"1GiB\"", "1:25: request.replay_buffer:", "expected 0 to 64MiB");
  expect_error("upstream.protocols = \"h1\"", "1:22: upstream.protocols:", "expected a list of texts");
  expect_error("upstream.protocols = [1]", "1:23: upstream.protocols:", "is the integer 1, expected a text");
  expect_error("upstream.protocols = [\"h3\"]",
               "1:23: upstream.protocols:", "item 1: `h3` is not known, expected \"h1\" or \"h2\"");
  expect_error("log.level = true", "1:13: log.level:", "is true, expected one of \"trace\"");
  expect_error("[[listen]]\nconnect_ports = [0]", "2:18: listen.connect_ports:", "expected a port from 1 to 65535");
  expect_error("[[listen]]\nconnect_ports = 443", "2:17: listen.connect_ports:", "a list of ports");
}

TEST(Errors, CutWhatIsTooLongToShow) {
  EXPECT_LT(errors("log.level = \"" + std::string(100'000, 'x') + "\"").size(), 300U);
}

TEST(Errors, InTheSyntaxLookLikeAllOthers) {
  expect_error("workers = 1\n[pool\nsize = 3\n", "2:", ": syntax: ");
  expect_error("workers = \n", "1:", ": syntax: ");
  expect_error("a . . b = 1\n", "1:", ": syntax: ");
  expect_error("workers = 1\nworkers = 2\n", "2:", ": syntax: ");
  expect_error("a = \"\xff\"\n", "1:", ": syntax: ");
  expect_error(std::string(5000, '['), "1:", ": syntax: ");
}

TEST(Errors, InTheSyntaxSayWhatWasExpected) {
  struct Case {
    const char *toml, *place, *says;
  };
  for (const Case& one : {
           Case{"workers = 1\nworkers = 2\n", "2:11", "`workers` is set already (line 1), expected each key once"},
           {"[[origin]]\nuri = \"http://a\"\nuri = \"http://b\"\n", "3:7", "`uri` is set already (line 2), expected"},
           {"pool.size = 1\npool.size = 2\n", "2:13", "`pool.size` is set already (line 1), expected"},
           {"[pool]\nsize = 1\n[log]\n[pool]\n", "4:1",
            "[pool] is there already (line 1), expected all keys of the table under one header"},
           {"pool.size = 1\n[pool]\n", "2:1", "[pool] is there already (line 1), expected"},
           {"[[origin]]\n[origin.pool]\n[[origin]]\n[origin.pool]\n[origin.pool]\n", "5:1",
            "[origin.pool] is there already (line 4), expected"},
           {"\"workers\" = 1\nworkers = 2\n", "2:11", "`workers` is set already (line 1), expected each key once"},
           {"pool.size = 1\npool . 'size' = 2\n", "2:17", "`pool.size` is set already (line 1), expected"},
           {"\"a b\" = 1\n\"a b\" = 2\n", "2:9", "a key is set already (line 1), expected each key once"},
           {"pool = { size = 1, size = 2 }\n", "1:27", "`size` is set already, expected each key once"},
           {"size = { size = 1, \"size\" = 2 }\n", "1:29", "`size` is set already, expected each key once"},
           {"pool = { x = \"\u00e9\", size = 1, size = 2 }\n", "1:36", "`size` is set already, expected"},
           {"pool = { size = 1 }\npool.size = 2\n", "2:1", "`pool` is set already (line 1), expected"},
           {"pool.size = 1\npool.size.x = 2\n", "2:6", "`pool.size` is set already (line 1), expected"},
           {"pool = { size = 1, size.x = 2 }\n", "1:20", "`size` is set already, expected each key once"},
           {"[log]\ntls = 1\n[upstream.tls]\n[upstream]\ntls = 2\n", "5:7", "`tls` is set already, expected"},
           {"\"size\": 1\n", "1:7", "`size` is followed by `:`, expected size = …"},
           {"workers = 1\nX-Key 5\n", "2:7", "a key is followed by no =, expected key = …"},
           {"[pool.total]\n[pool.total]\n", "2:1", "[pool.total] is there already (line 1), expected"},
           {"[origin.pool]\nsize = 1\n[[origin]]\n", "3:1",
            "[origin] or a part of it is above its [[origin]] (line 1), expected below"},
           {"[[listen]]\n[listen]\n", "2:1", "[listen] is a list of tables (line 1), expected [[listen]]"},
           {"; old\n", "1:1", "begins with `;`, expected # before a comment"},
           {"// old\n", "1:1", "begins with `//`, expected # before a comment"},
           {"{\"pool\": {}}\n", "1:1", "is JSON, expected tables and keys of TOML"},
           {"pool:\n  size: 1\n", "1:5", "`pool` is followed by `:`, expected a table [pool]"},
           {"[pool]\nsize: 1\n", "2:5", "`size` is followed by `:`, expected size = …"},
           {"[pool]\nsize 1\n", "2:6", "`size` is followed by no =, expected size = …"},
           {"[pool]\nsize =\n", "2:7", "`size` has no value, expected size = …"},
           {"[pool]\nsize = # 5\n", "2:8", "`size` has no value, expected size = …"},
           {"[pool]\nsize = ${SIZE}\n", "2:8", "`size` has a variable without quotes, expected \"${…}\""},
           {"[pool]\nsize = 1;\n", "2:9", "`size` has other text behind its value, expected one key and one value"},
           {"[pool]\nsize = 1, min_idle = 0\n", "2:9", "`size` has other text behind its value, expected"},
           {"[log]\nlevel = \"info\n", "2:14", "a text has no closing quote, expected one on the same line"},
           {"[log]\nlevel = \xe2\x80\x9cinfo\xe2\x80\x9d\n", "2:9", "has typographic quotes, expected \"…\""},
           {"[egress]\nallow = [\"a\", \"b\"\n", "2:19", "a list has no closing ], or no comma between two items"},
           {"[pool\nsize = 1\n", "1:6", "the header has no closing ], expected [table] or [[table]]"},
           {"[pool]]\n", "1:7", "the header is followed by other text, expected [table] or [[table]] alone"},
           {"[pool]\nsize = 99999999999999999999\n", "2:28", "`size` is too large, expected an integer below 2^63"},
           {"# caf\xe9\n", "1:5", "has a byte that is not UTF-8, expected a file in UTF-8"},
           {"[pool]\rsize = 1\r", "1:8", "has a line that ends with CR alone, expected LF or CR LF"},
       }) {
    const std::string said = errors(one.toml);
    EXPECT_TRUE(said.starts_with("c.toml:" + std::string(one.place) + ": syntax: " + one.says)) << one.toml << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

TEST(Errors, InTheSyntaxShowNoValue) {
  for (const char* const line :
       {"planted", "planted: 1", "planted = ", "planted = 1;", "k = planted planted", "k = \"planted", "k = 'planted",
        "k = {planted", "k = [planted", "k: planted", "k planted", "k = ${planted}", "k = {planted = 1, planted = 2}",
        "\"planted\" = 1\n\"planted\" = 2", "k = 1\nk.planted = 2", "k = planted; planted", "{\"k\": \"planted\"}"}) {
    EXPECT_EQ(errors(std::string(line) + "\n").find("planted"), std::string::npos) << errors(std::string(line) + "\n");
  }
}

TEST(Errors, OfTypesSayWhatToWrite) {
  expect_error("log.level = 3\n", "1:13: log.level:", "is the integer 3, expected one of \"trace\", ");
  expect_error("upstream.tls.min_version = 1.3\n",
               "1:28: upstream.tls.min_version:", "is a number with a fraction, expected one of \"1.2\", \"1.3\"");
  expect_error("request.retry_on = [503]\n",
               "1:21: request.retry_on:", "item 1: is the integer 503, expected a text in quotes: write \"503\"");
  expect_error("[[listen]]\naddress = \"unix:/x\"\nmode = 660\n",
               "3:8: listen.mode:", "a text in quotes: an octal file mode, such as \"0660\"");
  for (const char* const wrong : {"p:3128", "socks5://p:1"}) {
    const std::string why =
        wrong[0] == 'p' ? "has no scheme, expected" : "a proxy is reached over plain HTTP, expected";
    expect_error(std::string("upstream.proxy = \"") + wrong + "\"\n", "1:18: upstream.proxy:", why);
  }
  expect_error("egress.allow = [\"https://a.test\"]\n",
               "1:17: egress.allow:", "item 1: is a URL: write its host alone, expected");
  expect_error("[[listen]]\naddress = \"3128\"\n",
               "2:11: listen.address:", "names no IP address: write \"127.0.0.1:3128\"");
}

TEST(Errors, SayThatAValueNeedsQuotes) {
  const auto told = [](const std::string& value) { return errors("[pool]\nidle_timeout = " + value + "\n"); };
  EXPECT_EQ(told("60s"), "c.toml:2:16: syntax: `60s` is a duration without quotes: write \"60s\"\n");
  EXPECT_EQ(told("10m  # ten"), "c.toml:2:16: syntax: `10m` is a duration without quotes: write \"10m\"\n");
  EXPECT_EQ(told("16KiB"), "c.toml:2:16: syntax: `16KiB` is a size without quotes: write \"16KiB\"\n");
  EXPECT_EQ(told("info"), "c.toml:2:16: syntax: is a text without quotes: write \"…\"\n");
  EXPECT_EQ(told("127.0.0.1:3128\r"), "c.toml:2:16: syntax: is a text without quotes: write \"…\"\n");
  EXPECT_EQ(told("https://a?b=c"), "c.toml:2:16: syntax: is a text without quotes: write \"…\"\n");
  EXPECT_EQ(told("True"), "c.toml:2:16: syntax: `True` is not a TOML value: write true\n");
  EXPECT_EQ(told("off"), "c.toml:2:16: syntax: `off` is not a TOML value: write false\n");
  for (const char* other : {"", "'x", "\"x", "1 2", "[1", "0x", "1__2", "=", "1\nidle_timeout = 2"}) {
    EXPECT_NE(told(other).find(": syntax: "), std::string::npos) << other << told(other);
    EXPECT_EQ(told(other).find("write"), std::string::npos) << other << told(other);
  }
}

TEST(Errors, AreFoundBehindAValueThatNeedsQuotesTooAndEachValueHasOne) {
  EXPECT_EQ(errors("[pool]\nidle_timeout = 60s\nsize = 12x\nstrategy = first\n[log]\naccess = yes\nlevel = \"loud\"\n"),
            "c.toml:2:16: syntax: `60s` is a duration without quotes: write \"60s\"\n"
            "c.toml:3:8: syntax: is a text without quotes: write \"…\"\n"
            "c.toml:4:12: syntax: is a text without quotes: write \"…\"\n"
            "c.toml:6:10: syntax: `yes` is not a TOML value: write true\n"
            "c.toml:7:9: log.level: is \"loud\", expected one of \"trace\", \"debug\", \"info\", \"warn\", "
            "\"error\", \"off\"\n");
  EXPECT_EQ(errors("[pool]\nidle_timeout = 60s\nsize = [1\n").substr(0, 86),
            "c.toml:2:16: syntax: `60s` is a duration without quotes: write \"60s\"\nc.toml:3:11: synt");
  std::string many;
  for (int i = 0; i < 30; ++i) many += "a" + std::to_string(i) + " = 1s\n";
  const std::string told = errors(many);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 20) << "each takes another parse: there is a limit";
}

TEST(Errors, OfFilesNameThePath) {
  const Reading missing = read_file("/nonexistent/c.toml", no_env());
  EXPECT_EQ(errors_of(missing),
            "/nonexistent/c.toml:1:1: file: cannot be read: No such file or directory, expected a TOML file\n");
  EXPECT_NE(errors_of(read_file("/", no_env())).find("/:1:1: file: cannot be read: Is a directory"), std::string::npos);
}

TEST(Read, TakesAnEmptyFile) {
  EXPECT_EQ(errors_of(read_file("/dev/null", no_env())), "");
}

TEST(Schema, HasNoKeyTwiceAndNothingUndocumented) {
  for (const Section& section : sections()) {
    EXPECT_FALSE(section.doc.empty());
    for (const Setting& setting : section.settings) {
      EXPECT_EQ(find_setting(section, setting.key), &setting) << section.path << '.' << setting.key;
      EXPECT_FALSE(setting.doc.empty()) << setting.key;
      // A key with an empty default has an example.
      EXPECT_NE(empty(default_of(section, setting)), setting.example.empty()) << section.path << '.' << setting.key;
    }
  }
}

}  // namespace
}  // namespace carpool::proxy::config
