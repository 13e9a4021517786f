// Unit tests of the demo's traffic, sent to a proxy that the test plays, and directly to the demo's origin, which
// accepts absolute-form targets too.
#include "proxy/commands/demo/traffic.h"

#include <set>

#include "tests/unit/commands_demo_support.h"

namespace carpool::proxy::demo_tests {
namespace {

// A proxy played by the test, which accepts, reads and responds, or omits one of these.
class ScriptedProxy {
 public:
  ScriptedProxy() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const net::Address any_port = *net::Address::literal("127.0.0.1", 0);
    EXPECT_EQ(::bind(listener_.get(), any_port.get(), any_port.length()), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
  }
  net::Address address() const { return net::Address::local_of(listener_.get()); }
  Fd accept() const {
    pollfd waiting{listener_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 20'000), 1) << "nobody came";
    return Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // The next request's head. Stops before the body: none of the first requests has one.
  static std::string head(const Fd& client) {
    std::string out;
    for (char byte = 0; !out.ends_with("\r\n\r\n"); out += byte) {
      if (::recv(client.get(), &byte, 1, 0) != 1) return {};
    }
    return out;
  }
  static void respond(const Fd& client, std::string_view text) {
    EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

 private:
  Fd listener_;
};

DemoTraffic::Settings quick(std::size_t clients) {
  DemoTraffic::Settings settings;
  settings.pace = 1ms;
  settings.clients = clients;
  return settings;
}

std::unique_ptr<DemoTraffic> started(const net::Address& proxy, const DemoTraffic::Settings& settings) {
  auto traffic = DemoTraffic::start(proxy, settings);
  EXPECT_TRUE(traffic);
  return std::move(*traffic);
}

TEST(DemoTraffic, AsksAProxyForWholeUrisOnOneConnection) {
  const ScriptedProxy proxy;
  const auto traffic = started(proxy.address(), quick(1));
  const Fd client = proxy.accept();
  EXPECT_TRUE(ScriptedProxy::head(client).starts_with("GET http://demo/ HTTP/1.1\r\nHost: demo\r\n"));
  ScriptedProxy::respond(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_TRUE(ScriptedProxy::head(client).starts_with("GET https://demo-tls/ HTTP/1.1\r\nHost: demo-tls\r\n"));
  ScriptedProxy::respond(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_TRUE(ScriptedProxy::head(client).starts_with("GET http://demo/bytes/2000 HTTP/1.1\r\n"));
  EXPECT_EQ(traffic->counts().answered, 2U);
}

TEST(DemoTraffic, ComesBackOnANewConnectionWhenTheOldOneEnds) {
  const ScriptedProxy proxy;
  const auto traffic = started(proxy.address(), quick(1));
  {
    const Fd client = proxy.accept();
    ScriptedProxy::head(client);
    ScriptedProxy::respond(client, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(ScriptedProxy::head(client), "") << "it was told that the connection ends";
  }
  {
    const Fd client = proxy.accept();
    EXPECT_NE(ScriptedProxy::head(client), "");
  }
  const Fd client = proxy.accept();
  EXPECT_NE(ScriptedProxy::head(client), "");
  EXPECT_EQ(traffic->counts().answered, 1U);
  EXPECT_EQ(traffic->counts().failed, 1U);
}

TEST(DemoTraffic, CountsWhatWasNotAnsweredWellAsFailed) {
  const ScriptedProxy proxy;
  const auto traffic = started(proxy.address(), quick(1));
  const Fd client = proxy.accept();
  ScriptedProxy::head(client);
  ScriptedProxy::respond(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
  ScriptedProxy::head(client);
  EXPECT_EQ(traffic->counts().failed, 1U);
}

TEST(DemoTraffic, StopsAtOnceWhileNobodyAnswers) {
  const ScriptedProxy proxy;
  auto traffic = started(proxy.address(), quick(4));
  for (int i = 0; i < 4; ++i) ScriptedProxy::head(proxy.accept());
  const Instant before = Clock::now();
  traffic.reset();
  EXPECT_LT(Clock::now() - before, 2s);
}

TEST(DemoTraffic, GoesOnWhenNobodyListens) {
  const Fd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // it does not listen, and keeps its port
  const net::Address any_port = *net::Address::literal("127.0.0.1", 0);
  ASSERT_EQ(::bind(bound.get(), any_port.get(), any_port.length()), 0);
  const net::Address gone = net::Address::local_of(bound.get());
  Served served;
  const auto traffic = started(gone, quick(2));
  Caller clock = served.plain();
  const Instant end = Clock::now() + 20s;
  while (traffic->counts().failed < 10 && Clock::now() < end) clock.get("/delay/5");
  EXPECT_GE(traffic->counts().failed, 10U);
  EXPECT_EQ(traffic->counts().answered, 0U);
}

TEST(DemoTraffic, IsAnsweredWellByTheOriginItIsMadeFor) {
  Served served;
  const auto traffic = started(served.origin().plain(), quick(4));
  Caller clock = served.secure();
  const Instant end = Clock::now() + 60s;
  while (traffic->counts().answered < 450 && Clock::now() < end) EXPECT_EQ(clock.get("/delay/5")->head.status, 200);
  EXPECT_GE(traffic->counts().answered, 450U) << "two bursts, and every request many times";
  EXPECT_EQ(traffic->counts().failed, 0U);
}

}  // namespace
}  // namespace carpool::proxy::demo_tests
