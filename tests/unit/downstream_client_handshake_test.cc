// The TLS handshake of a client on a loop in memory, with real sockets and real TLS; a test decides when a step that
// was submitted runs.
#include "proxy/downstream/client_handshake.h"

#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exec/submitter.h"
#include "tests/unit/data_plane.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy {
namespace {

class HeldTasks final : public exec::Submitter {
 public:
  bool submit(exec::TaskPtr task) override {
    held.push_back(std::move(task));
    return true;
  }
  void run_all() {
    std::vector<exec::TaskPtr> due;
    due.swap(held);
    for (exec::TaskPtr& task : due) exec::run_task(std::move(task), nullptr);
  }
  std::vector<exec::TaskPtr> held;
};

class TheClientHandshake : public ::testing::Test, public HandshakeOwner {
 protected:
  TheClientHandshake() {
    exec::assume_on_loop();
    auto [ours, theirs] = net::tcp_pair();
    net::prepare_socket(ours.get());
    net::prepare_socket(theirs.get());
    fd = ours.get();
    client = tls::TlsTransport::client(*trusting, std::move(theirs), "localhost", 443);
    handshake =
        std::make_unique<ClientHandshake>(plane.context, *this, plane.listener, identity, std::move(ours), "peer");
    EXPECT_TRUE(handshake->start());
  }
  void tell(exec::Ready ready) {
    exec::assume_on_loop();
    const auto watcher = plane.loop.watchers.find(fd);
    if (watcher != plane.loop.watchers.end()) watcher->second->on_ready(ready);
  }
  void receive() {
    net::wait_readable(fd);
    tell({true, true, false});
  }
  // One step of the client, one of the other thread.
  void exchange_flights() {
    exec::assume_on_loop();
    EXPECT_TRUE(client->handshake());
    receive();
    tasks.run_all();
    plane.turn();
    if (net::wait_readable(client->fd())) client->on_readiness({true, true, false});
  }
  std::uint64_t ended(metrics::ClientHandshake end) const { return plane.registry.count(end); }

  HandshakeTurns turns{1};
  test::DataPlane plane;
  HeldTasks tasks;
  std::shared_ptr<tls::ServerContext> identity{tls::serve()};
  std::unique_ptr<tls::ClientContext> trusting = tls::trust(*identity);
  std::unique_ptr<tls::TlsTransport> client;
  int fd = -1;
  std::unique_ptr<ClientHandshake> handshake;
  std::unique_ptr<net::Transport> result;
  Fd tunnelled;
  bool drained = false;  // its successor is to be drained
  int over = 0;

 private:
  void destroy_later(ClientConnection&) override { ++over; }
  exec::Submitter* tasks_for_handshake() override { return &tasks; }
  HandshakeTurns& handshake_turns() override { return turns; }
  void established(Listener&, std::unique_ptr<const ListenPoint>, std::unique_ptr<net::Transport> transport,
                   std::string, bool drains) override {
    result = std::move(transport);
    drained = drains;
  }
  void tunnel(Listener&, InterceptedConnect&, metrics::Intercept, Fd socket, std::string, bool drains) override {
    tunnelled = std::move(socket);
    drained = drains;
  }
  ConnectInterceptor& interceptor() override { return interceptor_; }
  ConnectInterceptor interceptor_{plane.context, nullptr};
};

TEST_F(TheClientHandshake, HandsTheConnectionOverWhenTheTasksHaveDoneTheirSteps) {
  for (int n = 0; n < 10 && result == nullptr; ++n) exchange_flights();
  ASSERT_NE(result, nullptr);
  EXPECT_FALSE(drained);
  EXPECT_EQ(over, 1);
  EXPECT_EQ(handshake->listener(), nullptr);
  EXPECT_EQ(ended(metrics::ClientHandshake::full), 1U);
  EXPECT_TRUE(plane.loop.watchers.empty());
}

TEST_F(TheClientHandshake, SubmitsNothingBeforeTheFirstRecordIsWhole) {
  const std::string half("\x16\x03\x01\x02\x00 only the beginning", 24);
  ASSERT_EQ(::write(client->fd(), half.data(), half.size()), static_cast<ssize_t>(half.size()));
  receive();
  EXPECT_TRUE(tasks.held.empty());
  tell({true, true, true});
  EXPECT_EQ(tasks.held.size(), 1U) << "a client that leaves is noticed";
}

TEST_F(TheClientHandshake, SubmitsNothingForTheBeginningOfAnythingElse) {
  const auto send_more = [&](std::string_view bytes) {
    ASSERT_EQ(::write(client->fd(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    receive();
  };
  send_more("G");
  EXPECT_TRUE(tasks.held.empty()) << "OpenSSL would wait as well";
  send_more("ET /");
  EXPECT_EQ(tasks.held.size(), 1U);
}

class BeginningsOfARecord : public TheClientHandshake, public ::testing::WithParamInterface<std::string> {};

TEST_P(BeginningsOfARecord, CostNoTlsState) {
  const std::string& begun = GetParam();
  ASSERT_EQ(::write(client->fd(), begun.data(), begun.size()), static_cast<ssize_t>(begun.size()));
  receive();
  EXPECT_TRUE(tasks.held.empty());
}

INSTANTIATE_TEST_SUITE_P(OfEachForm, BeginningsOfARecord,
                         ::testing::Values(std::string("\x15\x03\x01\x40\x00", 5),
                                           std::string("\x14\x03\x01\x40\x00", 5),
                                           std::string("\x17\x03\x01\x40\x00", 5),
                                           std::string("\x16\x03\x01\x40\x01", 5),
                                           std::string("\xC0\x00\x01\x03\x01", 5)));

class TheClientInConnect : public TheClientHandshake {
 protected:
  TheClientInConnect() {
    exec::assume_on_loop();
    handshake->end();
    auto [ours, theirs] = net::tcp_pair();
    net::prepare_socket(ours.get());
    fd = ours.get();
    peer = std::move(theirs);
    auto connect = std::make_unique<InterceptedConnect>();
    connect->identity = identity;
    connect->slot = plane.registry.add_origin("https://localhost");
    connect->point = std::make_unique<ListenPoint>(
        plane.listener.point(), Interception{*pool::canonical_origin(pool::Scheme::https, "localhost:443")});
    handshake = std::make_unique<ClientHandshake>(plane.context, *this, plane.listener, std::move(connect),
                                                  std::move(ours), "peer");
    EXPECT_TRUE(handshake->start());
    over = 0;
  }
  void say(const std::string& bytes, bool last = false) {
    ASSERT_EQ(::write(peer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    if (last) ::shutdown(peer.get(), SHUT_WR);
    net::wait_readable(fd);
    tell({true, true, last});
  }
  Fd peer;
};

// A handshake record of one byte.
std::string record_of(char byte) {
  return std::string("\x16\x03\x01\x00\x01", 5) + byte;
}

TEST_F(TheClientInConnect, GetsItsTunnelWhenItEndsInTheMiddleOfItsHello) {
  say(std::string("\x16\x03\x01\x02\x00\x01", 6), true);
  EXPECT_TRUE(tunnelled);
  EXPECT_EQ(over, 1);
  std::array<char, 64> left{};
  EXPECT_EQ(::recv(tunnelled.get(), left.data(), left.size(), MSG_DONTWAIT), 6) << "what it sent is for the origin";
}

TEST_F(TheClientInConnect, HasATunnelThatIsDrainedIfItIsDrainedItself) {
  exec::assume_on_loop();
  handshake->drain();
  say("not TLS");
  EXPECT_TRUE(tunnelled);
  EXPECT_TRUE(drained);
}

TEST_F(TheClientInConnect, IsReadAFewTimesUntilItsHelloIsComplete) {
  constexpr int kReads = 16;
  const std::string head("\x01\x00\x10\x00", 4);  // a ClientHello of 4,096 bytes
  for (int reads = 1; reads < kReads; ++reads) {
    say(record_of(static_cast<std::size_t>(reads) <= head.size() ? head[static_cast<std::size_t>(reads) - 1] : '\0'));
    ASSERT_FALSE(tunnelled) << reads;
  }
  say(record_of('\0'));
  EXPECT_TRUE(tunnelled);
}

TEST_F(TheClientInConnect, IsNotReadAgainForAPartOfItsFirstRecord) {
  say(std::string("\x16\x03\x01\x02\x00\x01", 6));
  for (int bytes = 0; bytes < 100; ++bytes) say("x");
  EXPECT_FALSE(tunnelled);
  EXPECT_EQ(over, 0);
}

TEST_F(TheClientInConnect, GetsItsTunnelForARecordThatIsTooLong) {
  say(std::string("\x16\x03\x01\xff\xff\x01", 6));
  EXPECT_TRUE(tunnelled);
}

TEST_F(TheClientHandshake, EstablishesNothingOnceItIsOver) {
  exec::assume_on_loop();
  EXPECT_TRUE(client->handshake());
  receive();
  ASSERT_EQ(tasks.held.size(), 1U);
  handshake->end();
  tasks.run_all();
  plane.turn();
  EXPECT_EQ(over, 1);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(ended(metrics::ClientHandshake::failed), 1U);
}

TEST_F(TheClientHandshake, IsNotReportedTwiceByAStepThatReturnsAfterTheDeadline) {
  exec::assume_on_loop();
  EXPECT_TRUE(client->handshake());
  receive();
  ASSERT_EQ(tasks.held.size(), 1U);
  plane.pass(plane.listener.settings().header_timeout);
  EXPECT_EQ(ended(metrics::ClientHandshake::timeout), 1U);
  tasks.held.clear();  // closes it: rejected
  plane.turn();
  EXPECT_EQ(over, 1);
  EXPECT_EQ(ended(metrics::ClientHandshake::rejected), 0U);
}

TEST_F(TheClientHandshake, HasAShortTimeOnceItIsDrained) {
  exec::assume_on_loop();
  handshake->drain();
  plane.pass(std::chrono::milliseconds(500));
  handshake->drain();
  for (int n = 0; n < 10 && result == nullptr; ++n) exchange_flights();
  EXPECT_NE(result, nullptr);
  EXPECT_TRUE(drained);
}

TEST_F(TheClientHandshake, DoesNotDelayADrainForLong) {
  exec::assume_on_loop();
  handshake->drain();
  plane.pass(std::chrono::milliseconds(500));
  handshake->drain();
  EXPECT_EQ(over, 0);
  plane.pass(std::chrono::milliseconds(500));
  EXPECT_EQ(over, 1);
  EXPECT_EQ(ended(metrics::ClientHandshake::failed), 1U);
}

TEST_F(TheClientHandshake, WaitsBehindOthersAndIsNotifiedOnce) {
  exec::assume_on_loop();
  struct Other final : HandshakeTurns::Waiter {
    void on_turn() override { ++told; }
    int told = 0;
  };
  Other first, behind;
  ASSERT_TRUE(turns.acquire(first));
  EXPECT_TRUE(client->handshake());
  receive();
  receive();  // more readiness changes nothing
  EXPECT_TRUE(tasks.held.empty());
  EXPECT_FALSE(turns.acquire(behind));
  turns.give_back();
  EXPECT_EQ(tasks.held.size(), 1U);
  EXPECT_EQ(behind.told, 0);
  tasks.run_all();
  plane.turn();
  EXPECT_EQ(behind.told, 1);
}

TEST_F(TheClientHandshake, LeavesTheQueueWhenItsTimeIsOver) {
  exec::assume_on_loop();
  struct Other final : HandshakeTurns::Waiter {
    void on_turn() override {}
  } first;
  ASSERT_TRUE(turns.acquire(first));
  EXPECT_TRUE(client->handshake());
  receive();
  plane.pass(plane.listener.settings().header_timeout);
  EXPECT_EQ(ended(metrics::ClientHandshake::timeout), 1U);
  turns.give_back();
  EXPECT_TRUE(tasks.held.empty());
}

TEST_F(TheClientHandshake, MayBeDestroyedWhileAStepRuns) {
  exec::assume_on_loop();
  EXPECT_TRUE(client->handshake());
  receive();
  ASSERT_EQ(tasks.held.size(), 1U);
  handshake->end();
  handshake.reset();
  tasks.run_all();
  plane.turn();
  EXPECT_EQ(result, nullptr);
}

}  // namespace
}  // namespace carpool::proxy
