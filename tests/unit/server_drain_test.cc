// Unit tests of how carpool stops, step by step, without a server.
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
  bool begin_last_export() override {
    if (exports_) log_ += "export ";
    return exports_;
  }
  void stop_loops() override { log_ += "stop "; }
  void leave_last_client() {
    exec::assume_on_loop();
    gone_ = true;
    drain_.on_worker_empty();
    pass(Duration{});
  }
  void end_export() {
    exec::assume_on_loop();
    drain_.on_last_export();
  }

  Instant now_{std::chrono::hours(1)};
  test::SimLoop loop_{0, now_};
  Duration delay_{};
  bool gone_ = false;
  bool exports_ = false;
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

TEST_F(ADrain, EndsAfterItsLastExport) {
  exports_ = true;
  begin();
  leave_last_client();
  leave_last_client();
  EXPECT_EQ("stopping close drain export ", log()) << "once";
  end_export();
  EXPECT_EQ("stop ", log());
  end_export();
  EXPECT_EQ("", log());
}

TEST_F(ADrain, WaitsTwoSecondsForItsLastExport) {
  exports_ = true;
  begin();
  leave_last_client();
  pass(Drain::kLastExport - 1ms);
  EXPECT_EQ("stopping close drain export ", log());
  pass(1ms);
  EXPECT_EQ("stop ", log());
}

TEST_F(ADrain, CutsItsLastExportOffAtTheEndOfTheGrace) {
  exports_ = true;
  begin();
  pass(9s);
  leave_last_client();
  pass(1s);
  EXPECT_EQ("stopping close drain export stop ", log());
}

TEST_F(ADrain, EndsNowAtASecondRequestDuringItsLastExport) {
  exports_ = true;
  begin();
  leave_last_client();
  begin();
  EXPECT_EQ("stopping close drain export stop ", log());
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

TEST_F(ADrain, DoesNotEndForWantOfClientsWhileItAccepts) {
  delay_ = 5s;
  begin();
  leave_last_client();
  EXPECT_EQ("stopping ", log());
}

TEST_F(ADrain, DoesNotEndWithAnExportThatIsNotTheLast) {
  begin();
  end_export();
  EXPECT_EQ("stopping close drain ", log());
}

TEST_F(ADrain, IsNotBegunAgainByAHandOver) {
  begin();
  hand_over();
  EXPECT_EQ("stopping close drain ", log());
  pass(5s);
  EXPECT_EQ("", log()) << "the grace is that of the drain";
}

TEST_F(ADrain, LeavesIdleClientsForHalfTheGraceAfterAHandOver) {
  hand_over();
  EXPECT_EQ("leave graceful ", log());
  pass(4s);
  EXPECT_EQ("", log());
  pass(1s);
  EXPECT_EQ("drain ", log());
  pass(4s);
  EXPECT_EQ("", log());
  pass(1s);
  EXPECT_EQ("stop ", log());
}

TEST_F(ADrain, LeavesRunningRequestsTheGraceAtTheFirstRequestAfterAHandOver) {
  hand_over();
  pass(2s);
  begin();
  EXPECT_EQ("leave graceful drain ", log());
  pass(7s);
  EXPECT_EQ("", log());
  pass(1s);
  EXPECT_EQ("stop ", log()) << "the grace began with the hand-over";
}

TEST_F(ADrain, EndsAtTheSecondRequestAfterAHandOver) {
  hand_over();
  begin();
  EXPECT_EQ("leave graceful drain ", log());
  begin();
  EXPECT_EQ("stop ", log());
}

TEST_F(ADrain, LeavesRunningRequestsTheGraceAtARequestInTheSecondHalf) {
  hand_over();
  pass(5s);
  begin();
  EXPECT_EQ("leave graceful drain ", log());
  pass(5s);
  EXPECT_EQ("stop ", log());
}

TEST_F(ADrain, WaitsForItsLastExportAtTheFirstRequestAfterAHandOver) {
  exports_ = true;
  hand_over();
  leave_last_client();
  begin();
  EXPECT_EQ("leave graceful export ", log());
  end_export();
  EXPECT_EQ("stop ", log());
}

}  // namespace
}  // namespace carpool::proxy
