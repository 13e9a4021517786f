// Unit tests of a hand-over between two processes of which one does not respond or has left.
#include "proxy/server/handover/handover_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "metrics/registry.h"
#include "proxy/config/in_force.h"
#include "proxy/server/admin/admin_server.h"
#include "proxy/server/drain.h"
#include "proxy/server/executors.h"
#include "proxy/server/handover/fd_message.h"
#include "proxy/server/handover/handover_client.h"
#include "proxy/server/handover/handover_state.h"
#include "proxy/server/listener_set.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "tests/sim/pool_world.h"
#include "tests/sim/session_world.h"
#include "tests/unit/net_support.h"
#include "tests/unit/server_admin_support.h"

namespace carpool::proxy {
namespace {

config::Config without_admin() {
  config::Config config;
  config.admin.enabled = false;
  return config;
}

std::string socket_path() {
  return ::testing::TempDir() + "carpool-handover-" + std::to_string(::getpid());
}

// The loops run only while a test turns them. The listener has memory of its own, which is overwritten at its end.
class AHandover : public ::testing::Test, private Drain::Host {
 protected:
  explicit AHandover(Duration takeover_timeout = std::chrono::minutes(1)) {
    exec::assume_on_loop();
    EXPECT_TRUE(admin_.open({}));
    auto origins = OriginRegistry::make(settings_, environment_, registry_);
    EXPECT_TRUE(origins);
    origins_ = std::move(*origins);
    listener_ = new (memory_.data())
        HandoverListener({admin_, config_, *origins_, *first_, listeners_, drain_, takeover_timeout});
    EXPECT_TRUE(listener_->open("unix:" + socket_path(), std::nullopt));
  }
  ~AHandover() override {
    exec::assume_on_loop();
    if (listener_ != nullptr) end_listener();
    origins_->directory().stop(environment_.now);
  }
  // Returns true if the listener ends the connection.
  bool gives_up_on(const Fd& successor) {
    std::array<char, 4096> bytes;
    ssize_t received = -1;
    for (int turn = 0; turn < 100 && received != 0; ++turn) {
      admin_.loop().turn(false);
      received = ::recv(successor.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    }
    return received == 0;
  }
  // Connects a successor, for which the listener asks the first loop. Returns the sockets that it is given, or a Fault.
  Result<FdMessage> ask(Fd& successor) {
    successor = net::connect_to(net::address("unix:" + socket_path()));
    std::thread loop([this] { first_->run(); });
    admin_.loop().turn(true);
    first_->stop();
    loop.join();
    return receive_fds(successor.get(), Duration::zero());
  }
  static std::string heard(const Fd& successor) {
    std::array<char, 64> bytes;
    const ssize_t received = ::recv(successor.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(received, 0))};
  }
  void end_listener() {
    std::exchange(listener_, nullptr)->~HandoverListener();
    std::memset(memory_.data(), 0xff, memory_.size());
  }

  Duration drain_delay() const override { return {}; }
  Duration shutdown_grace() const override { return {}; }
  void on_stopping() override {}
  void close_listeners() override {}
  void leave_listeners() override { ++left_; }
  void drain_clients() override {}
  void start_graceful_close() override {}
  bool clients_gone() const override { return false; }
  void stop_loops() override {}

  config::Config settings_ = without_admin();
  ConfigInForce config_{settings_};
  Executors executors_{config::Threads{}, 1, 1};
  admin::FakeView view_;
  admin::FakeControl control_;
  AdminServer admin_{executors_, config_, view_, control_};
  test::FakeEnvironment environment_{1};
  metrics::Registry registry_{1, 10};
  std::unique_ptr<OriginRegistry> origins_;
  net::TurnedLoop first_;
  ListenerSet listeners_;
  Drain drain_{*first_, static_cast<Drain::Host&>(*this)};
  int left_ = 0;
  alignas(HandoverListener) std::array<char, sizeof(HandoverListener)> memory_{};
  HandoverListener* listener_ = nullptr;
};

TEST_F(AHandover, MayEndBeforeALoopCopiesTheSockets) {
  const Fd successor = net::connect_to(net::address("unix:" + socket_path()));
  EXPECT_TRUE(gives_up_on(successor)) << "a loop does not respond";
  end_listener();
  first_->drain();
}

TEST_F(AHandover, MayEndBeforeALoopStopsAccepting) {
  const Fd successor = net::connect_to(net::address("unix:" + socket_path()));
  std::thread loop([this] { first_->run(); });
  admin_.loop().turn(true);
  first_->stop();
  loop.join();
  ASSERT_TRUE(receive_fds(successor.get(), std::chrono::seconds(5)));
  ASSERT_EQ(::send(successor.get(), "go", 2, 0), 2);
  EXPECT_TRUE(gives_up_on(successor));
  end_listener();
  EXPECT_EQ(left_, 0);
  first_->drain();
  EXPECT_EQ(left_, 1);
}

TEST_F(AHandover, ServesOneSuccessorAtATime) {
  Fd one;
  ASSERT_TRUE(ask(one));
  const Fd two = net::connect_to(net::address("unix:" + socket_path()));
  EXPECT_TRUE(gives_up_on(two));
  EXPECT_EQ(heard(one), "");
  EXPECT_FALSE(gives_up_on(one));
}

class AHandoverToOneThatHangs : public AHandover {
 protected:
  AHandoverToOneThatHangs() : AHandover(Duration::zero()) {}
};

TEST_F(AHandoverToOneThatHangs, GivesTheSocketsToTheNextOne) {
  Fd one, two;
  ASSERT_TRUE(ask(one));
  ASSERT_TRUE(ask(two));
  EXPECT_EQ(heard(one), "late");
  EXPECT_TRUE(gives_up_on(one));
  ASSERT_EQ(::send(two.get(), "go", 2, 0), 2);
  EXPECT_TRUE(gives_up_on(two)) << "it takes over";
  first_->drain();
  EXPECT_EQ(left_, 1);
}

TEST_F(AHandoverToOneThatHangs, LeavesTheSocketsToOneThatHasJustBecomeReady) {
  Fd one, two;
  ASSERT_TRUE(ask(one));
  ASSERT_EQ(::send(one.get(), "go", 2, 0), 2);
  EXPECT_FALSE(ask(two));
  first_->drain();
  EXPECT_EQ(left_, 1);
  EXPECT_EQ(heard(one), "gone");
}

class ASuccessorOf : public ::testing::Test {
 public:
  void on_left() { ++left_; }
  void on_ready() { ++ready_; }
  void on_late() { ++late_; }

 protected:
  HandoverClient::Calls calls() {
    return {exec::Bound::to<&ASuccessorOf::on_left>(*this), exec::Bound::to<&ASuccessorOf::on_ready>(*this),
            exec::Bound::to<&ASuccessorOf::on_late>(*this)};
  }
  // Asks an old process that gives no socket, says `word` and closes.
  static std::unique_ptr<HandoverClient> successor_of_one_that_says(std::string_view word) {
    ::unlink(socket_path().c_str());
    Fd listener = net::listen_on("unix:" + socket_path());
    std::thread old([&listener, word] {
      EXPECT_TRUE(net::wait_readable(listener.get()));
      const Fd successor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      FdMessage message;
      message.text = encode(HandoverState{});
      EXPECT_TRUE(send_fds(successor.get(), message, std::chrono::seconds(5)));
      std::string_view rest = word;
      EXPECT_TRUE(send_word(successor.get(), rest));
    });
    auto client = HandoverClient::ask("unix:" + socket_path());
    old.join();
    ::unlink(socket_path().c_str());
    EXPECT_TRUE(client) << client.fault().detail;
    return client ? std::move(*client) : nullptr;
  }

  int left_ = 0, ready_ = 0, late_ = 0;
};

TEST_F(ASuccessorOf, AProcessThatGaveTheSocketsToAnotherOneStops) {
  exec::assume_on_loop();
  const auto client = successor_of_one_that_says("late");
  ASSERT_TRUE(client);
  test::SimLoop loop(0, Instant{std::chrono::hours(1)});
  client->watch(loop, calls());
  client->begin(1);
  EXPECT_EQ(late_, 1);
  EXPECT_EQ(ready_, 0);
  EXPECT_EQ(left_, 0);
  client->stop();
}

TEST_F(ASuccessorOf, AProcessThatHasLeftIsReadyAtOnceAndMissesNoConfirmation) {
  exec::assume_on_loop();
  const net::TemporaryFile log("");
  const Fd out(::open(log.path().c_str(), O_WRONLY | O_CLOEXEC));
  const auto client = successor_of_one_that_says("");
  ASSERT_TRUE(client);
  const Instant now{std::chrono::hours(1)};
  test::SimLoop loop(0, now);
  ASSERT_TRUE(log::start({.fd = out.get()}));
  client->watch(loop, calls());
  client->begin(1);
  log::stop();
  client->stop();
  EXPECT_EQ(ready_, 1);
  EXPECT_EQ(left_, 1);
  std::ifstream text(log.path());
  const std::string lines(std::istreambuf_iterator<char>(text), {});
  EXPECT_NE(lines.find("the old process has stopped accepting"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("did not confirm"), std::string::npos) << lines;
}

}  // namespace
}  // namespace carpool::proxy
