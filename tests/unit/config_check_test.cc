// Unit tests of rejected configurations: contradictory, unsafe and unsupported settings.
#include "config_helpers.h"
#include "proxy/config/print.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {
namespace {

const std::string kThisFile = CARPOOL_SOURCE_DIR "/tests/unit/config_check_test.cc";

TEST(OpenListener, IsRefusedWhereItIsNotLoopback) {
  for (const std::string address :
       {"0.0.0.0:3128", "10.0.0.1:3128", "[::]:3128", "[::ffff:10.0.0.1]:3128", "128.0.0.1:1"}) {
    const std::string listen = "[[listen]]\naddress = \"" + address + "\"\n";
    expect_error(listen, "2:11: listen.address:", "would be an open proxy");
    expect_error(listen + "origin = \"http://a\"\n", "2:11: listen.address:", "connect = false");
    expect_error(listen + "connect = false\n", "2:11: listen.address:", "fixed origin");
    good(listen + "origin = \"http://a\"\nconnect = false\n");
    good(listen + "open = true\n");
    good(listen + "[egress]\ndefault = \"deny\"\n");
    expect_error(listen + "[egress]\ndefault = \"deny\"\nreport_only = true\n",
                 "2:11: listen.address:", "\"deny\" without report_only,");
  }
}

TEST(OpenListener, IsNoSecondErrorBesideAProtectionThatIsWrong) {
  const std::string listen = "[[listen]]\naddress = \"0.0.0.0:3128\"\n";
  expect_error(listen + "credentials_file = \"/nowhere\"\n", "3:20: listen.credentials_file:", "cannot be read");
  expect_error(listen + "open = 1\n", "3:8: listen.open:", "expected true or false");
  expect_error(listen + "connect = false\norigin = \"http://a/b\"\n", "4:10: listen.origin:", "no path");
  expect_error(listen + "connect = 0\norigin = \"http://a\"\n", "3:11: listen.connect:", "expected true or false");
  expect_error(listen + "[egress]\ndefault = \"denny\"\n", "4:11: egress.default:", "expected one of");
  expect_error(listen + "[egress]\ndefault = \"deny\"\nreport_only = 0\n",
               "5:15: egress.report_only:", "expected true or false");
}

TEST(AValueThatIsWrong, IsNoErrorOfTheKeysThatDependOnIt) {
  const std::string listen = "[[listen]]\n";
  expect_error(listen + "proxy_protocol = 1\ntrusted = [\"10.0.0.1\"]\n",
               "2:18: listen.proxy_protocol:", "true or false");
  expect_error(listen + "address = \"unix:x\"\nmode = \"0600\"\n", "2:11: listen.address:", "is not absolute");
  expect_error("pool.classes = [\"a\", \"B\"]\n" + listen + "class = \"a\"\n", "1:22: pool.classes:", "item 2");
}

TEST(OpenListener, IsFineOnLoopbackAndUnixSockets) {
  for (const std::string address :
       {"127.0.0.1:3128", "127.8.9.1:0", "[::1]:3128", "[0:0::1]:1", "[::ffff:127.0.0.1]:1", "unix:/run/x"}) {
    good("[[listen]]\naddress = \"" + address + "\"\n");
  }
}

TEST(AutomaticSize, HasBoundsInOrderThatTheOtherNumbersFit) {
  EXPECT_TRUE(good("pool.size = \"auto\"\n").pool.auto_size());
  EXPECT_FALSE(good("").pool.auto_size());
  good("pool.min_size = 9\npool.max_size = 3\n");  // without "auto" they have no effect
  good("pool.size = \"auto\"\npool.min_size = 3\npool.max_size = 3\npool.min_idle = 3\n");
  expect_error("pool.size = \"auto\"\npool.max_size = 3\n",
               "2:17: pool.max_size:", "pool.min_size = 4 is more than pool.max_size = 3, expected at most that");
  expect_error("pool.size = \"auto\"\npool.min_idle = 257\n",
               "2:17: pool.min_idle:", "pool.min_idle = 257 is more than pool.max_size = 256");
  expect_error("pool.size = \"auto\"\npool.warm_up.size = 300\n", "2:21: pool.warm_up.size:", "pool.max_size = 256");
  expect_error("pool.size = \"many\"\n", "1:13: pool.size:", "expected an integer from 1 to 100000, or \"auto\"");
  expect_error("pool.size = 0\n", "1:13: pool.size:", "expected an integer from 1 to 100000, or \"auto\"");
  expect_error("pool.min_size = \"auto\"\n", "1:17: pool.min_size:", "expected an integer from 1 to 100000");
}

TEST(AutomaticSize, IsPrintedAsItWasWrittenAndIsOfOneOriginAlone) {
  const Config config = good(
      "[[origin]]\nuri = \"http://a\"\npool.size = \"auto\"\npool.max_size = 32\n[[origin]]\nuri = \"http://b\"\n");
  ASSERT_EQ(config.origins.size(), 2U);
  EXPECT_EQ(config.origins[0].pool.largest(), 32U);
  EXPECT_EQ(config.origins[1].pool.largest(), 64U);
  const std::string printed = print_config(config);
  EXPECT_NE(printed.find("size = \"auto\"\nmin_size = 4\nmax_size = 32\n"), std::string::npos) << printed;
  EXPECT_EQ(good(printed), config);
}

TEST(ListenAddress, IsAnIpAddressWithPortOrAUnixPath) {
  for (const std::string address :
       {"", "127.0.0.1", "localhost:3128", ":3128", "*:3128", ":", "*:x", "[::1]", "::1:3128", "127.0.0.1:65536",
        "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:", "127.0.0.1:1 ", "[fe80::1%lo]:1", "256.0.0.1:1", "unix:", "unix:x",
        "http://127.0.0.1:3128"}) {
    expect_error("[[listen]]\naddress = \"" + address + "\"\n", "2:11: listen.address:", "expected \"IP:PORT\"");
  }
  expect_error("[[listen]]\naddress = \"unix:/" + std::string(107, 'x') + "\"\n",
               "2:11: listen.address:", "longer than 107");
  good("[[listen]]\naddress = \"unix:/" + std::string(106, 'x') + "\"\n");
}

TEST(ListenAddress, OfAnotherProgramIsAnsweredWithOneToWrite) {
  expect_error("[[listen]]\naddress = \":3128\"\n", "2:11: listen.address:",
               "names no IP address: write \"127.0.0.1:3128\" for this machine alone, or \"0.0.0.0:3128\"");
  expect_error("admin.address = \"*:9901\"\n", "1:17: admin.address:", "write \"127.0.0.1:9901\"");
  expect_error("[[listen]]\naddress = \"localhost:80\"\n", "2:11: listen.address:", "write \"127.0.0.1:80\"");
}

TEST(Verification, ThatIsOffIsAWarningWhereItIsWritten) {
  const Reading reading = read_toml(
      "upstream.tls.verify = false\n[[origin]]\nuri = \"https://a\"\n[[origin]]\nuri = \"https://b\"\n"
      "upstream.tls.verify = false\n[[origin]]\nuri = \"https://c\"\nupstream.tls.verify = true\n");
  EXPECT_EQ(errors_of(reading), "");
  ASSERT_EQ(reading.warnings.size(), 2U);
  EXPECT_TRUE(reading.warnings[0].line_text().starts_with("c.toml:1:23: upstream.tls.verify: is false, "));
  EXPECT_TRUE(reading.warnings[1].line_text().starts_with("c.toml:6:23: origin.upstream.tls.verify: is false, "));
}

TEST(AdminToken, InPlainTextOffLoopbackIsAWarning) {
  const std::string rest = "token_file = \"" CARPOOL_SOURCE_DIR "/README.md\"\n";  // any file that can be read
  const Reading plain = read_toml("[admin]\naddress = \"10.0.0.1:9901\"\n" + rest);
  EXPECT_EQ(errors_of(plain), "");
  ASSERT_EQ(plain.warnings.size(), 1U);
  EXPECT_EQ(plain.warnings[0].line_text(),
            "c.toml:3:14: admin.token_file: is set without cert_file, so the token travels in plain text to "
            "\"10.0.0.1:9901\", expected cert_file and key_file");
  for (const char* const local : {"127.0.0.1:9901", "unix:/a"}) {
    const Reading reading = read_toml("[admin]\naddress = \"" + std::string(local) + "\"\n" + rest);
    ASSERT_EQ(reading.warnings.size(), 1U) << local;
    EXPECT_TRUE(
        reading.warnings[0].line_text().starts_with("c.toml:3:14: admin.token_file: is set beside the address"));
  }
  for (const char* const safe : {"address = \"10.0.0.1:9901\"\nenabled = false\n",
                                 "address = \"10.0.0.1:9901\"\ncert_file = \"/c\"\nkey_file = \"/k\"\n"}) {
    EXPECT_TRUE(read_toml("[admin]\n" + std::string(safe) + rest).warnings.empty()) << safe;
  }
}

TEST(ASyslogSocket, ThatIsNotThereIsAWarning) {
  const Reading reading = read_toml("log.syslog = \"unix:/nowhere/log\"\n");
  EXPECT_EQ(errors_of(reading), "");
  ASSERT_EQ(reading.warnings.size(), 1U);
  EXPECT_TRUE(
      reading.warnings[0].line_text().starts_with("c.toml:1:14: log.syslog: \"unix:/nowhere/log\" is not a socket"));
}

TEST(AnAlias, ThatIsTheHostOfAnotherOriginIsAWarning) {
  const Reading reading =
      read_toml("[[origin]]\nuri = \"https://a\"\nalias = [\"a\", \"b\"]\n[[origin]]\nuri = \"https://b\"\n");
  EXPECT_EQ(errors_of(reading), "");
  ASSERT_EQ(reading.warnings.size(), 1U);
  EXPECT_EQ(reading.warnings[0].line_text(),
            "c.toml:3:15: origin.alias: \"b\" is the host of another origin (line 5), expected a name of its own");
}

TEST(ListItems, HaveTheirErrorsWithNumberAndPlace) {
  EXPECT_EQ(errors("[egress]\ndeny = [\n  \"10.0.0.0/8\",\n  \"10.0.0.0/33\",\n  7,\n  \"a.*\",\n]\n"),
            "c.toml:4:3: egress.deny: item 2: the prefix is not a number up to 32, expected \"*.example.com\", "
            "\"example.com:443\", \"10.0.0.0/8\" or \"[fd00::]/8:443\"\n"
            "c.toml:5:3: egress.deny: item 3: is the integer 7, expected a text in quotes\n"
            "c.toml:6:3: egress.deny: item 4: `*` is only allowed alone or as the prefix `*.`, expected "
            "\"*.example.com\", \"example.com:443\", \"10.0.0.0/8\" or \"[fd00::]/8:443\"\n");
  expect_error("[[listen]]\nconnect_ports = [443, 0]\n", "2:23: listen.connect_ports:", "item 2: is the integer 0");
}

TEST(ListenOrigin, IsAnHttpOriginWithoutPath) {
  for (const std::string origin : {"api.example.com", "ftp://a", "http://a/x", "http://u@a", "http://"}) {
    expect_error("[[listen]]\norigin = \"" + origin + "\"\n", "2:10: listen.origin:", "with no path");
  }
  expect_error("[[listen]]\norigin = \"tcp://a:1\"\n", "2:10: listen.origin:", "tcp");
  good("[[listen]]\norigin = \"\"\n");
}

TEST(Addresses, AreListenedOnOnce) {
  expect_error("[[listen]]\naddress = \"127.0.0.1:1\"\n[[listen]]\naddress = \"127.0.0.1:01\"\n",
               "4:11: listen.address:", "line 2");
  expect_error("[[listen]]\naddress = \"127.0.0.1:9901\"\n",
               "1:1: admin.address:", "is listen.address already (line 2)");
  good("[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n");
  good("admin.enabled = false\n[[listen]]\naddress = \"127.0.0.1:9901\"\n");
  // Two wrong listeners are two errors, not three.
  EXPECT_EQ(read_toml("[[listen]]\naddress = \"x\"\n[[listen]]\naddress = \"y\"\n").errors.size(), 2U);
}

TEST(Admin, NeedsATokenWhereItIsNotLoopback) {
  expect_error("admin.address = \"0.0.0.0:9901\"", "1:17: admin.address:", "expected a token_file");
  good("admin.address = \"unix:/run/admin.sock\"");
  good("[admin]\naddress = \"0.0.0.0:9901\"\ntoken_file = \"" + kThisFile + "\"");
  good("[admin]\naddress = \"0.0.0.0:9901\"\nenabled = false\n");
}

TEST(Files, MustBeReadable) {
  expect_error("admin.token_file = \"/nonexistent\"",
               "1:20: admin.token_file:", "/nonexistent cannot be read: No such file");
  expect_error("upstream.tls.ca_file = \"/\"", "1:24: upstream.tls.ca_file:", "is a directory, expected a file");
  expect_error("admin.token_file = \"/dev/zero\"",
               "1:20: admin.token_file:", "/dev/zero cannot be read: is not a regular file, expected a file");
  const std::string origin = "[[origin]]\nuri = \"https://a\"\n[origin.upstream.tls]\n";
  expect_error(origin + "ca_file = \"/nonexistent\"", "4:11: origin.upstream.tls.ca_file:", "cannot be read");
}

TEST(AdminEndpoint, HasAWholeIdentityOrNone) {
  const std::string cert = "cert_file = \"" + kThisFile + "\"\n", key = "key_file = \"" + kThisFile + "\"\n";
  const std::string clients = "client_ca_file = \"" + kThisFile + "\"\n";
  expect_error("[admin]\n" + cert, "2:13: admin.cert_file:", "without key_file");
  expect_error("[admin]\n" + key, "2:12: admin.key_file:", "without cert_file");
  expect_error("[admin]\n" + clients, "2:18: admin.client_ca_file:", "without cert_file");
  good("[admin]\n" + cert + key + clients);
}

TEST(ClientCertificate, ComesWithItsKey) {
  expect_error("upstream.tls.cert_file = \"" + kThisFile + "\"", "1:26: upstream.tls.cert_file:", "without key_file");
  expect_error("upstream.tls.key_file = \"" + kThisFile + "\"", "1:25: upstream.tls.key_file:", "without cert_file");
  good("[upstream.tls]\nkey_file = \"" + kThisFile + "\"\ncert_file = \"" + kThisFile + "\"");
  // An origin may add the other half, and inherited settings cause no error in it.
  expect_error("upstream.tls.cert_file = \"" + kThisFile + "\"\n[[origin]]\nuri = \"https://a\"\n",
               "1:26: upstream.tls.cert_file:", "");
  // A wrong file is one error.
  expect_error("[upstream.tls]\nkey_file = \"/nonexistent\"\ncert_file = \"" + kThisFile + "\"",
               "2:12: upstream.tls.key_file:", "");
}

TEST(WarmUp, FitsThePool) {
  expect_error("pool.size = 1\npool.warm_up.size = 2\n",
               "2:21: pool.warm_up.size:", "pool.warm_up.size = 2 is more than pool.size = 1");
  expect_error("[[origin]]\nuri = \"http://a\"\n[origin.pool]\nsize = 4\nwarm_up.size = 5\n",
               "5:16: origin.pool.warm_up.size:", "more than origin.pool.size = 4");
  good("pool.size = 1");
}

TEST(MinIdle, FitsThePoolAndTheTotal) {
  EXPECT_NE(errors("pool.size = 3\npool.min_idle = 4\n")
                .find("2:17: pool.min_idle: pool.min_idle = 4 is more than pool.size = 3"),
            std::string::npos);
  EXPECT_NE(errors("pool.total.max_connections = 5\n[[origin]]\nuri = \"http://a\"\npool.min_idle = 3\n"
                   "[[origin]]\nuri = \"http://b\"\npool.min_idle = 3\n")
                .find("1:30: pool.total.max_connections: is 5, less than the sum of min_idle over all origins (6)"),
            std::string::npos);
}

TEST(Origins, BeyondTheMaximumOfPoolsAreAWarning) {
  const std::string two = "[[origin]]\nuri = \"http://a\"\n[[origin]]\nuri = \"http://b\"\n";
  const Reading reading = read_toml("pool.total.max_origins = 1\n" + two);
  ASSERT_EQ(reading.warnings.size(), 1U);
  EXPECT_EQ(
      reading.warnings[0].line_text(),
      "c.toml:1:26: pool.total.max_origins: is 1, less than the number of [[origin]] (2), each of which has a pool "
      "nevertheless: any other origin gets 503");
  EXPECT_TRUE(read_toml("pool.total.max_origins = 2\n" + two).warnings.empty());
}

TEST(AKeyThatIsWrong, CausesNoSecondErrorOfTheKeysThatItIsComparedWith) {
  for (const std::string& text :
       {std::string("dns.min_ttl = \"2h\"\ndns.max_ttl = \"soon\"\n"),
        std::string("pool.total.max_connections = -1\npool.size = 100000\npool.min_idle = 100000\n")}) {
    const Reading reading = read_toml(text);
    EXPECT_EQ(reading.errors.size(), 1U) << text;
  }
}

TEST(HedgedAttempts, NeedALimitOfAnAttempt) {
  good("request.hedge = true\nrequest.per_try_timeout = \"1s\"\n");
  expect_error("request.hedge = true\n",
               "1:17: request.hedge:", "is set without per_try_timeout, expected both or none");
  const std::string both = "request.hedge = true\nrequest.per_try_timeout = \"1s\"\n[[origin]]\nuri = \"http://a\"\n";
  good(both + "request.hedge = false\nrequest.per_try_timeout = \"0s\"\n");
  expect_error(both + "request.per_try_timeout = \"0s\"\n", "5:27: origin.request.per_try_timeout:",
               "is zero beside request.hedge, expected a limit, or hedge = false");
}

TEST(Ranges, AreInOrder) {
  expect_error("dns.min_ttl = \"10m\"", "1:15: dns.min_ttl:", "\"10m\" is more than dns.max_ttl = \"5m\"");
  expect_error("dns.max_ttl = \"1s\"", "1:15: dns.max_ttl:", "\"5s\" is more than dns.max_ttl = \"1s\"");
  EXPECT_NE(errors("threads.min = 20").find("threads.min = 20 is more than threads.max = 16"), std::string::npos);
}

TEST(OriginRegistry, AreListedOnceHoweverTheyAreSpelled) {
  expect_error("[[origin]]\nuri = \"https://a\"\n[[origin]]\nuri = \"HTTPS://A:443/\"\n",
               "4:7: origin.uri:", "listed already (line 2)");
  good("[[origin]]\nuri = \"https://a\"\n[[origin]]\nuri = \"http://a\"\n[[origin]]\nuri = \"https://a:444\"\n");
}

TEST(Aliases, AreHostsAndListedOnce) {
  expect_error("[[origin]]\nuri = \"http://a\"\nalias = [\"x\", \"X.\"]\n",
               "3:15: origin.alias:", "is an alias already (line 3)");
  expect_error("[[origin]]\nuri = \"http://a\"\nalias = [\"x\"]\n[[origin]]\nuri = \"http://b\"\nalias = [\"x\"]\n",
               "6:10: origin.alias:", "is an alias already (line 3)");
  for (const std::string alias : {"x:81", "x:80", "x:", "http://x", "x/", "u@x", ""}) {
    expect_error("[[origin]]\nuri = \"http://a\"\nalias = [\"" + alias + "\"]\n",
                 "3:10: origin.alias:", "expected a host without scheme");
  }
  const Config config = good("[[origin]]\nuri = \"http://a\"\nalias = [\"[0::1]\", \"::2\", \"127.1\"]\n");
  EXPECT_EQ(config.origins[0].alias, (std::vector<std::string>{"::1", "::2", "127.0.0.1"}));
}

TEST(PinnedAddresses, AreIpAddressesWithPort) {
  for (const std::string address : {"a:1", "127.0.0.1", "127.0.0.1:0", "unix:x", "[::1]"}) {
    expect_error("[[origin]]\nuri = \"http://a\"\naddresses = [\"" + address + "\"]\n",
                 "3:14: origin.addresses:", "expected \"IP:PORT\"");
  }
}

TEST(Protocols, AreEachListedOnceAndAtLeastOne) {
  EXPECT_TRUE(read_toml("upstream.protocols = [\"h2\"]"));
  EXPECT_TRUE(read_toml("upstream.protocols = [\"h1\", \"h2\"]"));
  expect_error("upstream.lenient = [\"bare_lf\"]", "1:20: upstream.lenient:", "[origin.upstream]");
  expect_error("upstream.lenient = [\"bare_cr\"]",
               "1:21: upstream.lenient:", "item 1: `bare_cr` is not known, expected \"bare_lf\"");
  EXPECT_TRUE(read_toml("[[origin]]\nuri = \"http://old\"\n[origin.upstream]\nlenient = [\"bare_lf\"]"));
  expect_error("upstream.protocols = []", "1:22: upstream.protocols:", "is empty");
  expect_error("upstream.protocols = [\"h1\", \"h1\"]", "1:29: upstream.protocols:", "twice");
}

TEST(ATcpOrigin, AcceptsTheSettingsOfTunnels) {
  const Config config = good("[[origin]]\nuri = \"tcp://a:1\"\naddresses = [\"127.0.0.1:1\"]\npool.size = 2\n");
  EXPECT_EQ(config.origins.at(0).origin.scheme, pool::Scheme::tcp);
  EXPECT_EQ(config.origins.at(0).pool.size, 2);
}

TEST(ATcpOrigin, RejectsTheSettingsOfRequests) {
  for (const char* line :
       {"alias = [\"a\"]", "allow = [\"GET /*\"]", "pool.max_streams = 9", "upstream.protocols = [\"h1\"]"}) {
    expect_error(std::string("[[origin]]\nuri = \"tcp://a:1\"\n") + line, "3:", "does not apply to a tcp origin");
  }
}

TEST(AnInterceptedOrigin, IsAnHttpsOriginWithAName) {
  const std::string authority = "[intercept]\nca_dir = \"/tmp\"\n";
  const auto origin = [&](const std::string& uri, const std::string& more = "") {
    return authority + "[[origin]]\nuri = \"" + uri + "\"\nintercept = true\n" + more;
  };
  EXPECT_TRUE(good(origin("https://a.example")).origins.at(0).intercept);
  good(origin("https://a.example:8443"));
  for (const char* uri : {"http://a.example", "tcp://a.example:443"}) {
    expect_error(origin(uri), "5:13: origin.intercept:", "expected an https origin");
  }
  expect_error(origin("https://127.0.0.1"), "5:13: origin.intercept:", "expected an origin with a name");
  expect_error(origin("https://a.example", "upstream.tls.verify = false\n"),
               "5:13: origin.intercept:", "verify = false, expected only one of them");
}

TEST(AnInterceptedOrigin, NeedsAnAuthority) {
  expect_error("[[origin]]\nuri = \"https://a\"\nintercept = true\n",
               "3:13: origin.intercept:", "without intercept.ca_dir");
  expect_error("intercept.ca_dir = \"/nonexistent\"", "1:20: intercept.ca_dir:", "/nonexistent cannot be read");
  expect_error("intercept.ca_dir = \"/etc/passwd\"", "1:20: intercept.ca_dir:", "/etc/passwd");
}

TEST(EverySetting, TakesItsDefault) {
  for (const Section& section : sections()) {
    for (const Setting& setting : section.settings) {
      const Value value = default_of(section, setting);
      // Absent ports and an absent secret are written by leaving the key out.
      if (section.in_config == nullptr || std::holds_alternative<Ports>(value)) continue;
      if (std::holds_alternative<Secret>(value)) continue;
      good((section.path.empty() ? "" : "[" + std::string(section.path) + "]\n") + std::string(setting.key) + " = " +
           toml(value));
    }
  }
}

TEST(Available, IsTaken) {
  good(R"(
pool = { learn_idle_timeout = false, reuse = "always", max_tunnels = 3, max_usage = 9, health_check.enabled = false }
request = { replay_buffer = "1MiB", retry_idempotent = true, max_retries = 0, timeout = "9s" }
metrics = { enabled = false, max_origins = 5 }
egress = { default = "deny", allow = ["*"], deny = ["fd00::/8", "example.com"], report_only = true }
log = { format = "text", access = false, level = "off" }
dns = { min_ttl = "0s", max_ttl = "1s", stale_for = "0s" }
)");
}

TEST(MaxOrigins, AreNoMoreThanThereAreNumbersForTheirConnections) {
  good("pool.total.max_origins = 65536");
  expect_error("pool.total.max_origins = 65537",
               "1:26: pool.total.max_origins:", "expected an integer from 1 to 65536");
}

TEST(Classes, AreTwoToFourNamesThatListenersMayUse) {
  good("pool.classes = [\"high\", \"normal\"]\n[[listen]]\naddress = \"127.0.0.1:1\"\nclass = \"high\"");
  good("[[origin]]\nuri = \"http://a\"\npool.classes = [\"a\", \"b-1\", \"c_2\", \"d\"]\n");
  expect_error("pool.classes = [\"a\"]", "1:16: pool.classes:", "lists 1, expected none, or 2 to 4");
  expect_error("pool.classes = [\"a\", \"b\", \"a\"]", "1:27: pool.classes:", "twice");
  expect_error("[[origin]]\nuri = \"http://a\"\npool.classes = [\"a\"]\n", "3:16: origin.pool.classes:", "lists 1");
  expect_error("pool.classes = [\"High\", \"b\"]", "1:", "is not a valid class name");
  expect_error("[[listen]]\naddress = \"127.0.0.1:1\"\nclass = \"gold\"",
               "3:9: listen.class:", "is not in any pool.classes");
}

TEST(AProbe, IsARequestThatChangesNothing) {
  for (const std::string probe : {"OPTIONS *", "OPTIONS /x", "HEAD /healthz", "GET /a?b=c"}) {
    good("pool.health_check = { interval = \"1s\", probe = \"" + probe + "\" }");
  }
  for (const std::string probe : {"POST /x", "GET *", "GET", "GET x", "options *", "GET /a b", "GET  /a"}) {
    expect_error("pool.health_check.probe = \"" + probe + "\"", "1:", "expected \"OPTIONS *\", \"HEAD /path\"");
  }
}

TEST(EgressPatterns, AreChecked) {
  expect_error("egress.allow = [\"a.*.com\"]",
               "1:17: egress.allow:", "item 1: `*` is only allowed alone or as the prefix");
  expect_error("egress.deny = [\"10.0.0.0/33\"]", "1:16: egress.deny:", "up to 32");
  for (const std::string malformed : {"a:b:80", "fd00::1:443x", "[fd00::1"}) {
    expect_error("egress.deny = [\"" + malformed + "\"]",
                 "1:16: egress.deny:", "the address or the port is malformed; an IPv6 address with a port is written");
  }
}

}  // namespace
}  // namespace carpool::proxy::config
