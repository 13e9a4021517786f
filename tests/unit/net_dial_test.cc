#include "proxy/net/dial.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#include <optional>

#include "proxy/net/address_policy.h"
#include "proxy/net/address_set.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/happy_eyeballs.h"
#include "tests/unit/net_name_server.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::net {
namespace {

struct Dialing final : DialOwner {
  void on_dialed(Result<Dialed> result) override {
    ++calls;
    if (result) {
      dialed.emplace(std::move(*result));
    } else {
      fault.emplace(result.take_fault());
    }
    if (destroy_inside) dial.reset();
  }
  int calls = 0;
  bool destroy_inside = true;
  std::optional<Dialed> dialed;
  std::optional<Fault> fault;
  std::unique_ptr<Dial> dial;
};

// Refuses some addresses and records its calls.
struct Refusing final : AddressPolicy {
  Status may_dial(const pool::Origin&, const Address& address) const override {
    asked.push_back(address.text());
    if (!all && address.text() != refused) return Done{};
    return Fault(FaultKind::egress_denied, Side::self, "no " + address.text());
  }
  bool is_own(const Address& address) const override { return address.text() == own; }
  std::string refused, own;
  bool all = false;
  mutable std::vector<std::string> asked;
};

pool::Origin origin_at(const std::string& host, std::uint16_t port) {
  pool::Origin origin;
  origin.host = host;
  origin.port = port;
  return origin;
}

struct DialTest : ::testing::Test {
  DialTest() {
    listener = listen_on("127.0.0.1:0");
    port = Address::local_of(listener.get()).port();
  }
  dns::Settings dns_settings() const {
    dns::Settings settings;
    settings.servers = {names.at()};
    settings.resolv_conf = conf.path();
    return settings;
  }
  void begin(Dialing& to, const pool::Origin& origin, DialPlan plan = {}) {
    exec::assume_on_loop();
    plan.origin = &origin;
    to.dial = std::make_unique<Dial>(*loop, resolver, std::move(plan), to);
    to.dial->start();
    EXPECT_EQ(to.calls, 0) << "called from inside start()";
  }
  Dialing& run(const pool::Origin& origin, DialPlan plan = {}) {
    result = Dialing();
    begin(result, origin, std::move(plan));
    EXPECT_TRUE(loop.until([&] { return result.calls > 0; }));
    EXPECT_EQ(result.calls, 1);
    return result;
  }
  TurnedLoop loop;
  NameServer names{loop};
  TemporaryFile conf{"options timeout:5 attempts:2\n"};
  dns::Resolver resolver{*loop, dns_settings()};
  Fd listener;
  std::uint16_t port = 0;
  Dialing result;
};

TEST_F(DialTest, ConnectsToAnAddressWithoutAskingForIt) {
  exec::assume_on_loop();
  const auto origin = origin_at("127.0.0.1", port);
  auto& done = run(origin);
  ASSERT_TRUE(done.dialed);
  EXPECT_EQ(done.dialed->peer.text(), "127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(done.dialed->local, Address::local_of(done.dialed->transport->fd()));
  EXPECT_TRUE(names.asked.empty());
  int keep_alive = 0;
  socklen_t size = sizeof keep_alive;
  ::getsockopt(done.dialed->transport->fd(), SOL_SOCKET, SO_KEEPALIVE, &keep_alive, &size);
  EXPECT_NE(keep_alive, 0);
  EXPECT_TRUE(done.dialed->transport->no_data_pending());
  EXPECT_TRUE(loop->watch_shared(done.dialed->transport->fd(), 1, 1)) << "it is handed over unwatched";
}

TEST_F(DialTest, ResolvesNames) {
  names.table["api.test"] = {{"127.0.0.1"}, 60, 0, {}};
  const auto origin = origin_at("api.test", port);
  auto& done = run(origin);
  ASSERT_TRUE(done.dialed) << done.fault->detail;
  EXPECT_EQ(names.asked["api.test"], 1);
}

TEST_F(DialTest, UsesPinnedAddressesInsteadOfDns) {
  const auto origin = origin_at("pinned.test", 1);
  DialPlan plan;
  plan.pinned = {address("127.0.0.1:" + std::to_string(port))};
  EXPECT_TRUE(run(origin, plan).dialed);
  EXPECT_TRUE(names.asked.empty());
}

TEST_F(DialTest, FallsBackToTheOtherFamily) {
  names.table["two.test"] = {{"::1", "127.0.0.1"}, 60, 0, {}};  // no listener on [::1]
  const auto origin = origin_at("two.test", port);
  const Duration took = TurnedLoop::shortest(200ms, [&] {
    auto& done = run(origin);
    ASSERT_TRUE(done.dialed) << done.fault->detail;
    EXPECT_EQ(done.dialed->peer.host(), "127.0.0.1");
  });
  EXPECT_LT(took, 200ms) << "a refusal starts the next attempt at once";
}

TEST_F(DialTest, FallsBackToTheFamilyThatTheNameServerIsLateWith) {
  exec::assume_on_loop();
  names.table["two.test"] = {{"::1", "127.0.0.1"}, 60, 0, {}};  // no listener on [::1]
  names.held_type = 1;
  const auto origin = origin_at("two.test", port);
  AddressSet addresses;
  DialPlan plan;
  plan.address_set = &addresses;
  begin(result, origin, plan);
  ASSERT_TRUE(loop.until([&] { return names.waiting() == 1; }));
  loop.pass(300ms);  // ::1 alone has been dialed
  EXPECT_EQ(result.calls, 0);
  names.held_type = 0;
  names.release();
  ASSERT_TRUE(loop.until([&] { return result.calls > 0; }));
  ASSERT_TRUE(result.dialed) << result.fault->detail;
  EXPECT_EQ(result.dialed->peer.host(), "127.0.0.1");
  EXPECT_GE(result.dialed->dns, 240ms) << "both parts of the resolution";
  for (const AddressSet::Info& info : addresses.all(loop->now())) {
    EXPECT_EQ(info.failures, info.address.starts_with('[') ? 1U : 0U) << info.address << ": a dial counts it once";
  }
}

TEST_F(DialTest, ReportsTheRefusalOfOneFamilyIfTheNameServerNeverAnswersForTheOther) {
  names.table["two.test"] = {{"::1"}, 60, 0, {}};
  names.held_type = 1;
  const auto origin = origin_at("two.test", port);
  DialPlan plan;
  plan.timeout = 5s;
  const Instant begun = Clock::now();
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::connect_refused) << done.fault->detail;
  EXPECT_LT(Clock::now() - begun, 4s);
}

// Listens on `at` with a full accept queue: further SYNs are dropped.
struct Silent {
  explicit Silent(std::string_view at) : listener(listen_on(at, 0)), peer(Address::local_of(listener.get())) {
    for (int i = 0; i < 4; ++i) {
      Fd fd(::socket(peer.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      [[maybe_unused]] const int begun = ::connect(fd.get(), peer.get(), peer.length());
      fillers.push_back(std::move(fd));
    }
  }
  Fd listener;
  Address peer;
  std::vector<Fd> fillers;
};

TEST_F(DialTest, TriesTheFamilyThatTheNameServerIsLateWithWhileTheOtherIsSilent) {
  exec::assume_on_loop();
  const Silent silent("[::1]:" + std::to_string(port));
  int round = 0;
  const Duration took = TurnedLoop::shortest(600ms, [&] {
    exec::assume_on_loop();
    const std::string name = std::to_string(++round) + ".test";  // another name: the answers are cached
    names.table[name] = {{"::1", "127.0.0.1"}, 60, 0, {}};
    names.held_type = 1;
    const auto origin = origin_at(name, port);
    result = Dialing();
    begin(result, origin);
    ASSERT_TRUE(loop.until([&] { return names.waiting() == 1; }));
    ASSERT_TRUE(loop.until([&] { return result.dial->phase() == "connecting"; }));
    loop.pass(260ms);
    names.held_type = 0;
    names.release();
    ASSERT_TRUE(loop.until([&] { return result.calls > 0; }));
    ASSERT_TRUE(result.dialed) << result.fault->detail;
    EXPECT_EQ(result.dialed->peer.host(), "127.0.0.1");
  });
  EXPECT_LT(took, 700ms) << "the attempt begins 250 ms after the last one, not after the name server's answer";
}

TEST_F(DialTest, TriesTheNextAddressAfterAQuarterOfASecond) {
  const Silent silent("127.0.0.2:" + std::to_string(port));
  const auto origin = origin_at("slow.test", port);
  DialPlan plan;
  plan.pinned = {silent.peer, address("127.0.0.1:" + std::to_string(port))};
  const Duration took = TurnedLoop::shortest(900ms, [&] {
    auto& done = run(origin, plan);
    ASSERT_TRUE(done.dialed);
    EXPECT_EQ(done.dialed->peer.host(), "127.0.0.1");
  });
  EXPECT_GE(took, 240ms);
  EXPECT_LT(took, 900ms);
}

TEST_F(DialTest, NamesTheAddressesThatDidNotAnswer) {
  const Silent silent("127.0.0.2:0");
  const auto origin = origin_at("127.0.0.2", silent.peer.port());
  DialPlan plan;
  plan.timeout = 100ms;
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::connect_timeout);
  EXPECT_EQ(done.fault->detail, "TCP connect to " + silent.peer.text() + " timed out after 100ms");
}

TEST_F(DialTest, ReportsARefusal) {
  const Address nobody = refusing("127.0.0.1:0");
  const auto origin = origin_at("127.0.0.1", nobody.port());
  auto& done = run(origin);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::connect_refused);
  EXPECT_EQ(done.fault->detail, "TCP connect to " + nobody.text() + ": Connection refused");
}

TEST_F(DialTest, ReportsANameThatDoesNotExist) {
  const auto origin = origin_at("missing.test", 80);
  auto& done = run(origin);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::dns_error);
}

TEST_F(DialTest, EndsAResolutionAtItsDeadline) {
  names.mute = true;
  const auto origin = origin_at("mute.test", 80);
  DialPlan plan;
  plan.timeout = 50ms;
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::dns_timeout);
  EXPECT_EQ(done.fault->detail, "resolving mute.test timed out after 50ms");
}

TEST_F(DialTest, AsksAnewAfterEveryAddressRefused) {
  names.table["moved.test"] = {{"127.0.0.3"}, 300, 0, {}};
  const auto origin = origin_at("moved.test", port);
  EXPECT_TRUE(run(origin).fault);
  names.table["moved.test"] = {{"127.0.0.1"}, 300, 0, {}};
  EXPECT_TRUE(run(origin).dialed);
}

TEST_F(DialTest, AsksThePolicyForEachAddressItReallyDials) {
  names.table["two.test"] = {{"127.0.0.9", "127.0.0.1"}, 60, 0, {}};
  Refusing policy;
  policy.refused = "127.0.0.9:" + std::to_string(port);
  const auto origin = origin_at("two.test", port);
  DialPlan plan;
  plan.policy = &policy;
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.dialed);
  EXPECT_EQ(done.dialed->peer.host(), "127.0.0.1");
}

TEST_F(DialTest, ReportsThePolicysFaultWhenNothingMayBeDialed) {
  Refusing policy;
  policy.all = true;
  const auto origin = origin_at("127.0.0.1", port);
  DialPlan plan;
  plan.policy = &policy;
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::egress_denied);
  EXPECT_EQ(policy.asked.size(), 1U);
}

TEST_F(DialTest, ReportsAnOwnAddressRatherThanARefusalBesideIt) {
  const Address nobody = refusing("127.0.0.1:0");
  const auto origin = origin_at("own.test", nobody.port());
  Refusing policy;
  policy.own = policy.refused = "127.0.0.9:" + std::to_string(nobody.port());
  DialPlan plan;
  plan.policy = &policy;
  for (const bool first : {true, false}) {
    plan.pinned = {nobody, nobody};
    plan.pinned[first ? 0 : 1] = address(policy.own);
    auto& done = run(origin, plan);
    ASSERT_TRUE(done.fault);
    EXPECT_EQ(done.fault->kind, FaultKind::egress_denied) << done.fault->detail;
  }
}

TEST_F(DialTest, ReportsAnOwnAddressRatherThanTheSilenceBesideIt) {
  const Silent silent("127.0.0.2:0");
  const auto origin = origin_at("own.test", silent.peer.port());
  Refusing policy;
  policy.own = policy.refused = "127.0.0.9:" + std::to_string(silent.peer.port());
  DialPlan plan;
  plan.policy = &policy;
  plan.timeout = 50ms;
  plan.pinned = {address(policy.own), silent.peer};
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->detail, "no " + policy.own);
}

TEST_F(DialTest, ReportsARefusalRatherThanADenialBesideIt) {
  const Address nobody = refusing("127.0.0.1:0");
  const auto origin = origin_at("two.test", nobody.port());
  Refusing policy;
  policy.refused = "127.0.0.9:" + std::to_string(nobody.port());
  DialPlan plan;
  plan.policy = &policy;
  plan.pinned = {nobody, address(policy.refused)};
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::connect_refused) << "it may accept the next time";
}

TEST_F(DialTest, ReportsADenialRatherThanAnAddressWithoutARoute) {
  const auto origin = origin_at("two.test", 1);
  Refusing policy;
  policy.refused = "127.0.0.9:1";
  DialPlan plan;
  plan.policy = &policy;
  for (const char* const nowhere : {"224.0.0.1:1", "[ff02::1]:1"}) {  // TCP has no route to a multicast address
    plan.pinned = {address(policy.refused), address(nowhere)};
    auto& done = run(origin, plan);
    ASSERT_TRUE(done.fault);
    EXPECT_EQ(done.fault->kind, FaultKind::egress_denied) << nowhere << ": " << done.fault->detail;
  }
}

TEST_F(DialTest, ReportsThatDescriptorsRanOut) {
  const auto origin = origin_at("127.0.0.1", port);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  begin(result, origin);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool ended = loop.until([&] { return result.calls > 0; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(ended);
  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->kind, FaultKind::budget) << result.fault->detail;
}

TEST_F(DialTest, MayBeCancelledInEveryPhase) {
  names.mute = true;
  const Silent silent("127.0.0.2:0");
  Dialing resolving, connecting, starting;
  const auto name = origin_at("mute.test", 80), hole = origin_at("127.0.0.2", silent.peer.port());
  begin(resolving, name);
  begin(connecting, hole);
  loop.pass(10ms);
  begin(starting, hole);
  resolving.dial.reset();
  connecting.dial.reset();
  starting.dial.reset();
  loop.pass(10ms);
  EXPECT_EQ(resolving.calls + connecting.calls + starting.calls, 0);
}

// Accepts on the loop's thread and performs a TLS handshake.
struct TlsEnd final : exec::Watcher {
  TlsEnd(TurnedLoop& l, tls::ServerContext& c, int f) : loop(l), context(c), fd(f), key(begin(l, f)) {}
  ~TlsEnd() {
    exec::assume_on_loop();
    loop->unwatch(fd, key);
    for (auto& c : connections) loop->unwatch(c->stream->fd(), c->key);
  }
  TlsEnd(const TlsEnd&) = delete;
  TlsEnd& operator=(const TlsEnd&) = delete;
  struct Connection final : exec::Watcher {
    void on_ready(exec::Ready ready) override {
      stream->on_readiness(ready);
      if (!silent) [[maybe_unused]]
        auto done = stream->handshake();
    }
    std::unique_ptr<tls::TlsTransport> stream;
    exec::WatchKey key;
    bool silent = false;
  };
  void on_ready(exec::Ready) override LOOP_ONLY {
    for (int accepted; (accepted = ::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      auto connection = std::make_unique<Connection>();
      connection->stream = context.accept(Fd(accepted));
      connection->silent = silent;
      connection->key = *loop->watch(accepted, *connection);
      connections.push_back(std::move(connection));
    }
  }
  exec::WatchKey begin(TurnedLoop& l, int f) {
    exec::assume_on_loop();
    return *l->watch(f, *this);
  }
  TurnedLoop& loop;
  tls::ServerContext& context;
  int fd;
  exec::WatchKey key;
  bool silent = false;
  std::vector<std::unique_ptr<Connection>> connections;
};

TEST_F(DialTest, SpeaksTlsToTheEnd) {
  exec::assume_on_loop();
  const auto server = tls::serve();
  const auto client = tls::trust(*server);
  TlsEnd end(loop, *server, listener.get());
  names.table["localhost.test"] = {{"127.0.0.1"}, 60, 0, {}};
  const auto origin = origin_at("127.0.0.1", port);
  DialPlan plan;
  plan.tls = client.get();
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.dialed) << done.fault->detail;
  EXPECT_EQ(done.dialed->transport->security().version, "TLSv1.3");
  EXPECT_TRUE(loop->watch_shared(done.dialed->transport->fd(), 1, 1)) << "it is handed over unwatched";
}

TEST_F(DialTest, ReportsACertificateForAnotherName) {
  const auto server = tls::serve();
  const auto client = tls::trust(*server);
  TlsEnd end(loop, *server, listener.get());
  names.table["api.test"] = {{"127.0.0.1"}, 60, 0, {}};
  const auto origin = origin_at("api.test", port);
  DialPlan plan;
  plan.tls = client.get();
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::tls_certificate);
  EXPECT_NE(done.fault->detail.find("wanted api.test"), std::string::npos) << done.fault->detail;
}

TEST_F(DialTest, EndsASilentHandshakeAtItsDeadline) {
  const auto server = tls::serve();
  const auto client = tls::trust(*server);
  TlsEnd end(loop, *server, listener.get());
  end.silent = true;
  const auto origin = origin_at("127.0.0.1", port);
  DialPlan plan;
  plan.tls = client.get();
  plan.timeout = 500ms;  // a loaded machine connects within it
  loop->turn(false);     // the deadline counts from the clock of the loop's last turn
  auto& done = run(origin, plan);
  ASSERT_TRUE(done.fault);
  EXPECT_EQ(done.fault->kind, FaultKind::connect_timeout);
  const std::string at = "127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(done.fault->detail, "TLS handshake with " + at + " (" + at + ") timed out after 500ms");
}

TEST_F(DialTest, MayBeCancelledInTheHandshake) {
  const auto server = tls::serve();
  const auto client = tls::trust(*server);
  TlsEnd end(loop, *server, listener.get());
  end.silent = true;
  const auto origin = origin_at("127.0.0.1", port);
  DialPlan plan;
  plan.tls = client.get();
  begin(result, origin, plan);
  EXPECT_TRUE(loop.until([&] { return result.dial->past_tcp(); }));
  result.dial.reset();
  loop.pass(5ms);
  EXPECT_EQ(result.calls, 0);
}

TEST(Interleave, LetsFamiliesTakeTurns) {
  std::vector<Address> all;
  for (const char* text : {"[::1]:1", "[::2]:1", "[::3]:1", "10.0.0.1:1"}) all.push_back(address(text));
  std::string order;
  for (const auto& one : interleave(all)) order += one.host() + " ";
  EXPECT_EQ(order, "::1 10.0.0.1 ::2 ::3 ");
}

}  // namespace
}  // namespace carpool::proxy::net
