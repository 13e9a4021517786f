// Unit tests of commands to a pool whose loop ends: each is carried out or refused with a reason, never left open.
#include "proxy/server/admin_control.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "proxy/config/in_force.h"
#include "proxy/server/drain.h"
#include "proxy/server/reload/reloader.h"
#include "proxy/upstream/warm_up.h"
#include "tests/unit/data_plane.h"

namespace carpool::proxy {
namespace {

constexpr const char* kPaused = "http://paused.test";

class ACommand : public testing::Test, private Drain::Host, private WarmUp::Host {
 protected:
  ACommand() { exec::assume_on_loop(); }
  ~ACommand() override {
    plane_.turn();  // mail that refers to the control
    replaced_ = in_force_.replace(std::make_unique<config::Config>());
  }
  void begin(admin::PoolAction action) { pending_ = control_.apply(kPaused, {action, std::nullopt}); }
  pool::Destination& destination() { return *(*plane_.origins->at(*pool::parse_origin(kPaused)))->destination; }
  void drain() {
    exec::assume_on_loop();
    drain_.begin();
    drain_.begin();
    EXPECT_EQ(drain_.stage(), Drain::Stage::over);
  }
  void expect_refused() {
    const std::optional<admin::Response> response = pending_->poll_pending();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 409);
    EXPECT_NE(response->body.find("carpool has drained and exits: the command had no effect"), std::string::npos);
  }

  Duration drain_delay() const override { return {}; }
  Duration shutdown_grace() const override { return std::chrono::seconds(10); }
  void on_stopping() override {}
  void close_listeners() override {}
  void leave_listeners() override {}
  void drain_clients() override {}
  void start_graceful_close() override {}
  bool clients_gone() const override { return false; }
  void stop_loops() override {}
  void on_warm() override {}

  std::unique_ptr<const config::Config> replaced_;
  test::DataPlane plane_;
  ConfigInForce in_force_{plane_.settings};
  Drain drain_{plane_.loop, static_cast<Drain::Host&>(*this)};
  WarmUp warm_up_{plane_.loop, *plane_.origins, in_force_, static_cast<WarmUp::Host&>(*this)};
  const std::unique_ptr<Reloader> reloader_;
  ServerAdminControl control_{{plane_.loop, *plane_.origins, *plane_.policy, drain_, warm_up_, reloader_}};
  std::unique_ptr<admin::PendingResponse> pending_;
};

TEST_F(ACommand, IsAnsweredWhenItsLoopHasCarriedItOut) {
  destination();
  begin(admin::PoolAction::pause);
  EXPECT_FALSE(pending_->poll_pending());
  plane_.turn();
  ASSERT_TRUE(pending_->poll_pending());
  EXPECT_EQ(pending_->poll_pending()->status, 200);
  EXPECT_TRUE(destination().snapshot(plane_.now).paused);
}

TEST_F(ACommand, ThatReachesItsLoopAfterTheDrainHasNoEffectAndIsRefused) {
  destination();
  drain();
  begin(admin::PoolAction::pause);
  plane_.turn();
  EXPECT_FALSE(destination().snapshot(plane_.now).paused);
  EXPECT_FALSE(pending_->poll_pending()) << "the loops have not ended";
  control_.loops_ended();
  expect_refused();
}

TEST_F(ACommand, ThatNeverReachesItsLoopIsRefused) {
  begin(admin::PoolAction::resume);
  control_.loops_ended();
  expect_refused();
}

TEST_F(ACommand, ThatArrivesAfterTheLoopsIsRefused) {
  control_.loops_ended();
  begin(admin::PoolAction::resume);
  expect_refused();
}

TEST_F(ACommand, ThatWasCarriedOutBeforeTheEndIsDone) {
  destination();
  begin(admin::PoolAction::resume);
  plane_.turn();
  control_.loops_ended();
  ASSERT_TRUE(pending_->poll_pending());
  EXPECT_EQ(pending_->poll_pending()->status, 200);
}

TEST_F(ACommand, ToWarmUpEndsWithTheLoops) {
  auto begun = control_.warm_up(*pool::parse_origin(kPaused), 1);
  ASSERT_TRUE(begun);
  EXPECT_FALSE((*begun)->poll_pending());
  control_.loops_ended();
  const std::optional<admin::Response> response = (*begun)->poll_pending();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 503);
}

}  // namespace
}  // namespace carpool::proxy
