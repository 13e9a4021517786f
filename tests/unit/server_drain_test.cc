// How carpool stops, step by step, without a server.
#include "proxy/server/drain.h"

#include <gtest/gtest.h>

#include "tests/sim/session_world.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

class ADrain : public testing::Test, private Drain::Host {
 protected:
  ADrain() { exec::assume_on_loop(); }
  void pass(Duration time) {
    exec::assume_on_loop();
    now_ += time;
    loop_.timers.run_due(now_);
    loop_.mailbox.deliver(SIZE_MAX);
  }
  void begin() {
    exec::assume_on_loop();
    drain_.begin();
  }
  void hand_over() {
    exec::assume_on_loop();
    drain_.hand_over();
  }
  std::string log() { return std::exchange(log_, {}); }

  Duration drain_delay() const override { return delay_; }
  Duration shutdown_grace() const override { return 10s; }
  void on_stopping() override { log_ += "stopping "; }
  void close_listeners() override { log_ += "close "; }
  void leave_listeners() override { log_ += "leave "; }
  void drain_clients() override { log_ += "drain "; }
  void start_graceful_close() override { log_ += "graceful "; }
  bool clients_gone() const override { return gone_; }
  void stop_loops() override { log_ += "stop "; }

  Instant now_{std::chrono::hours(1)};
  test::SimLoop loop_{0, now_};
  Duration delay_{};
  bool gone_ = false;
  std::string log_;
  Drain drain_{loop_, *this};
};

TEST_F(ADrain, ClosesListenersAndEndsWhenTheGraceIsOver) {
  begin();
  EXPECT_EQ("stopping close drain ", log());
  pass(9s);
  EXPECT_EQ("", log());
  pass(1s);
  EXPECT_EQ("stop ", log());
  EXPECT_EQ(Drain::Stage::over, drain_.stage());
}

TEST_F(ADrain, GoesOnAcceptingForTheDelay) {
  delay_ = 5s;
  begin();
  EXPECT_EQ("stopping ", log());
  EXPECT_FALSE(drain_.serving());
  pass(5s);
  EXPECT_EQ("close drain ", log());
}

TEST_F(ADrain, EndsWhenTheLastClientIsGone) {
  begin();
  drain_.on_worker_empty();
  pass(0s);
  EXPECT_EQ("stopping close drain ", log()) << "another loop has clients";
  gone_ = true;
  drain_.on_worker_empty();
  pass(0s);
  EXPECT_EQ("stop ", log());
}

TEST_F(ADrain, EndsAtTheSecondRequest) {
  begin();
  begin();
  EXPECT_EQ("stopping close drain stop ", log());
  begin();
  EXPECT_EQ("", log());
}

TEST_F(ADrain, LeavesIdleClientsForHalfTheGraceAfterAHandOver) {
  hand_over();
  EXPECT_EQ("leave graceful ", log());
  pass(5s);
  EXPECT_EQ("drain ", log());
  pass(5s);
  EXPECT_EQ("stop ", log());
}

}  // namespace
}  // namespace carpool::proxy
