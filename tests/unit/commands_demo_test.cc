// Unit tests of the configuration, the output and the counters of `--demo`.
#include "proxy/commands/demo/demo.h"

#include <fcntl.h>

#include <algorithm>
#include <sstream>

#include "proxy/config/print.h"
#include "proxy/config/read.h"
#include "tests/unit/commands_demo_support.h"

namespace carpool::proxy::demo_tests {
namespace {

// The output, as lines that can be waited for.
class Printed {
 public:
  Printed() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    in_.reset(fds[0]);
    out_ = ::fdopen(fds[1], "w");
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  ~Printed() { std::fclose(out_); }
  std::FILE* file() { return out_; }
  std::string line() {
    std::string out;
    for (char byte = 0; !out.ends_with('\n') && ::read(in_.get(), &byte, 1) == 1;) out += byte;
    return out;
  }
  std::string lines_to(std::string_view word) {
    std::string out;
    while (out.find(word) == std::string::npos) out += line();
    return out;
  }

 private:
  Fd in_;
  std::FILE* out_ = nullptr;
};

Fd listening(std::string& address) {
  const net::Address wanted = *net::Address::parse(address);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(fd.get(), wanted.get(), wanted.length()) != 0 || ::listen(fd.get(), 1) != 0) return Fd();
  address = net::Address::local_of(fd.get()).text();
  return fd;
}

TEST(DemoConfig, LeadsThreeNamesToTheOrigin) {
  Served served;
  const config::Config config = demo_config(served.origin());
  ASSERT_EQ(config.origins.size(), 3U);
  const config::OriginSettings &plain = config.origins[0], &secure = config.origins[1], &h2 = config.origins[2];
  EXPECT_EQ(h2.origin.label(), "https://demo-h2");
  EXPECT_EQ(h2.addresses, std::vector<std::string>{served.origin().h2().text()});
  EXPECT_NE(h2.origin.tls, secure.origin.tls);
  EXPECT_EQ(plain.origin.label(), "http://demo");
  EXPECT_EQ(plain.alias, std::vector<std::string>{"demo"});
  EXPECT_EQ(plain.addresses, std::vector<std::string>{served.origin().plain().text()});
  EXPECT_EQ(plain.origin.tls, 0U);
  EXPECT_EQ(secure.origin.label(), "https://demo-tls");
  EXPECT_EQ(secure.alias, std::vector<std::string>{"demo-tls"});
  EXPECT_EQ(secure.addresses, std::vector<std::string>{served.origin().secure().text()});
  EXPECT_EQ(secure.upstream.tls.ca_file, served.origin().ca_file());
  EXPECT_EQ(secure.upstream.tls.server_name, "demo-tls");
  EXPECT_TRUE(secure.upstream.tls.verify);
}

TEST(DemoConfig, IsAValidConfigurationFile) {
  Served served;
  const config::Config config = demo_config(served.origin());
  const config::Reading read = config::read_text(config::print_config(config), "demo.toml", {});
  for (const config::ConfigError& error : read.errors) ADD_FAILURE() << error.line_text();
  EXPECT_EQ(read.config, config);
}

TEST(DemoConfig, TakesAnyPortWhereTheUsualOneIsTaken) {
  std::string address = "127.0.0.1:0";
  {
    const Fd taken = listening(address);
    ASSERT_TRUE(taken);
    EXPECT_EQ(free_or_any_port(address), "127.0.0.1:0");
  }
  EXPECT_EQ(free_or_any_port(address), address);
}

TEST(DemoConfig, NeverNamesAPortInUse) {
  Served served;
  config::Config config;
  config.listen.front().address = "127.0.0.1:0";
  const Fd taken = listening(config.listen.front().address);
  ASSERT_TRUE(taken);
  EXPECT_EQ(demo_config(served.origin(), config).listen.front().address, "127.0.0.1:0");
}

TEST(DemoLine, SaysTheRateOfTheTimeBetweenAndTheReuseSinceTheStart) {
  EXPECT_EQ(
      demo_line({140, 4, 2, 90, 0, 2}, {160, 4, 2, 104, 5, 5}, 1s),
      "requests 20/s  failed 3/s  waiting 5  |  reuse 97.5 %  opened 4  saved 156 connections, 104 TLS handshakes");
  EXPECT_EQ(demo_line({0, 0, 0}, {0, 0, 0}, 1s),
            "requests 0/s  failed 0/s  waiting 0  |  reuse 0.0 %  opened 0  saved 0 connections, 0 TLS handshakes");
  EXPECT_EQ(demo_line({100, 2, 2}, {140, 2, 2}, 2s),
            "requests 20/s  failed 0/s  waiting 0  |  reuse 98.5 %  opened 2  saved 138 connections, 0 TLS handshakes");
}

TEST(DemoLine, SaysAHundredPercentOnlyWhenItIs) {
  EXPECT_EQ(
      demo_line({}, {100'000, 1, 1}, 1s),
      "requests 100000/s  failed 0/s  waiting 0  |  reuse 99.9 %  opened 1  saved 99999 connections, 0 TLS handshakes");
  EXPECT_EQ(demo_line({}, {5, 0, 1}, 1s),
            "requests 5/s  failed 0/s  waiting 0  |  reuse 100.0 %  opened 0  saved 5 connections, 0 TLS handshakes");
}

TEST(DemoLine, SurvivesNumbersThatMakeNoSense) {
  EXPECT_EQ(demo_line({50, 1, 1}, {10, 20, 1}, 0s),
            "requests 0/s  failed 0/s  waiting 0  |  reuse 0.0 %  opened 20  saved 0 connections, 0 TLS handshakes");
}

TEST(DemoGreeting, NamesTheAddressesAndThreeCommands) {
  Served served;
  const auto at = [](const char* text) { return *net::Address::parse(text); };
  std::istringstream greeting(demo_greeting(at("127.0.0.1:3128"), at("127.0.0.1:9901"), served.origin()));
  std::vector<std::string> commands;
  std::string all;
  for (std::string line; std::getline(greeting, line);) {
    all += line + '\n';
    if (line.find("curl ") != std::string::npos) commands.push_back(line);
  }
  EXPECT_EQ(commands,
            (std::vector<std::string>{"  curl -x http://127.0.0.1:3128 http://demo/",
                                      "  curl --http2-prior-knowledge -H 'Host: demo-h2' http://127.0.0.1:3128/",
                                      "  curl http://127.0.0.1:9901/pools"}));
  EXPECT_NE(all.find(served.origin().plain().text()), std::string::npos);
  EXPECT_NE(all.find("HTTP/1.1 over TLS, at " + served.origin().secure().text()), std::string::npos);
  EXPECT_NE(all.find("HTTP/2 over TLS, at " + served.origin().h2().text()), std::string::npos);
  EXPECT_NE(all.find(served.origin().ca_file()), std::string::npos);
}

TEST(Ticker, PrintsALineAtEachInterval) {
  Printed printed;
  std::uint64_t seen = 0;  // used by the ticker's thread alone until it ends
  {
    auto ticker = Ticker::start([&seen] { return DemoNumbers{++seen * 10, 1, 2}; }, printed.file(), 2ms);
    ASSERT_TRUE(ticker);
    EXPECT_NE(printed.line().find("reuse 95.0 %  opened 1  saved 19 connections, 0 TLS handshakes\n"),
              std::string::npos);
    EXPECT_NE(printed.line().find("reuse 96.6 %  opened 1  saved 29 connections, 0 TLS handshakes\n"),
              std::string::npos);
  }
  EXPECT_GE(seen, 3U);
}

TEST(Ticker, StopsAtOnceBetweenTwoLines) {
  const Instant before = Clock::now();
  {
    EXPECT_TRUE(Ticker::start([] { return DemoNumbers{}; }, stdout, 1h));
  }
  EXPECT_LT(Clock::now() - before, 2s);
}

TEST(Demo, GreetsStartsTrafficCountsAndStops) {
  Printed printed;
  auto demo = Demo::make(printed.file());
  ASSERT_TRUE(demo);
  EXPECT_EQ((*demo)->config().origins.size(), 3U);
  const net::Address listener = (*demo)->origin().plain();  // it accepts absolute-form targets as a proxy does
  ASSERT_TRUE((*demo)->start(listener, listener, [] { return DemoNumbers{160, 4, 2}; }));
  EXPECT_NE(printed.lines_to("reuse").find("http://" + listener.text() + "/pools"), std::string::npos);
  (*demo)->stop();
  (*demo)->stop();
}

}  // namespace
}  // namespace carpool::proxy::demo_tests
