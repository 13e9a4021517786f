// Unit tests of connections opened before any borrow: by a warm-up and by min_idle.
#include <gtest/gtest.h>

#include "pool/directory/directory.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::TestBorrower;

class AWarmUp : public test::PoolScene {
 protected:
  AWarmUp() : PoolScene(4) {}
  std::uint32_t warm_up(std::uint32_t open, std::uint32_t most = 100) {
    world.on(0);
    return destination().warm_up(open, most, world.now, &end);
  }
  void sweep() {
    world.on(0);
    destination().sweep(world.now);
  }
  void dial_all() {
    while (!world.dials.empty()) world.dialed();
  }
  WarmUpEnd end{};  // of the last warm_up()
};

TEST_F(AWarmUp, OpensWhatIsMissingAndNoMoreThanTheCap) {
  EXPECT_EQ(warm_up(3), 3U);
  EXPECT_EQ(warm_up(3), 0U) << "three are coming";
  dial_all();
  EXPECT_EQ(warm_up(3), 0U);
  EXPECT_EQ(warm_up(100), 1U) << "the cap is four";
  dial_all();
  EXPECT_EQ(warm_up(100), 0U);
  EXPECT_EQ(end, WarmUpEnd::complete) << "the size allows no more";
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 4U);
  EXPECT_EQ(snapshot().opened[static_cast<std::size_t>(OpenCause::warm_up)], 4U);
}

TEST_F(AWarmUp, BeginsAsManyDialsAsItIsTold) {
  EXPECT_EQ(warm_up(4, 1), 1U);
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(AWarmUp, IsThereForWhoeverComesMeanwhile) {
  warm_up(1);
  TestBorrower& one = waiting();
  EXPECT_EQ(world.dials.size(), 1U) << "nobody dials beside a dial that is under way";
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(one.state, TestBorrower::State::leased);
  EXPECT_EQ(one.lease.opened(), OpenCause::warm_up);
}

TEST_F(AWarmUp, ThatFailsRefusesNobodyWhoCameForSomethingElse) {
  warm_up(1);
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(snapshot().alive(), 0U);
  EXPECT_EQ(snapshot().failed_total(), 1U);
}

TEST_F(AWarmUp, OpensNothingWhereThePoolIsStopping) {
  world.on(0);
  destination().stop(world.now);
  EXPECT_EQ(warm_up(2), 0U);
  EXPECT_EQ(end, WarmUpEnd::stopped);
}

TEST_F(AWarmUp, OfAPausedPoolIsNotComplete) {
  world.on(0);
  destination().pause(world.now);
  EXPECT_EQ(warm_up(2), 0U);
  EXPECT_EQ(end, WarmUpEnd::paused);
  destination().resume(world.now);
  EXPECT_EQ(warm_up(2), 2U);
  dial_all();
  destination().pause(world.now);
  EXPECT_EQ(warm_up(2), 0U);
  EXPECT_EQ(end, WarmUpEnd::complete);
}

TEST(AWarmUpUnderTheTotal, IsNotCompleteWithoutASlot) {
  test::FakeEnvironment world(1);
  Directory directory({8, 1}, world, 1);
  Limits limits;
  limits.size = 4;
  const Result<Destination*> found = directory.at(test::origin_named("warm"), limits, world.now);
  ASSERT_TRUE(found);
  WarmUpEnd end{};
  EXPECT_EQ((*found)->warm_up(3, 3, world.now, &end), 1U);
  EXPECT_EQ((*found)->warm_up(3, 3, world.now, &end), 0U);
  EXPECT_EQ(end, WarmUpEnd::no_slot);
  world.dialed();
  directory.stop(world.now);
  EXPECT_EQ(world.wrong, "");
}

TEST_F(AWarmUp, KeepsMinIdleReadyAndOpensThemAgainWhenTheOriginClosesThem) {
  limits.min_idle = 2;
  idle_connection();
  sweep();
  EXPECT_EQ(world.dials.size(), 1U) << "one rests, one is missing";
  sweep();
  EXPECT_EQ(world.dials.size(), 1U) << "and on its way";
  dial_all();
  EXPECT_EQ(world.opened.back(), OpenCause::min_idle);
  world.close_by_peer(**world.live.begin());
  while (world.event_one(0)) continue;
  sweep();
  EXPECT_EQ(world.dials.size(), 1U);
  dial_all();
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 2U);
}

TEST_F(AWarmUp, DoesNotDialForMinIdleWhileDialsFail) {
  limits.min_idle = 1;
  sweep();
  world.dial_failed();
  sweep();
  EXPECT_TRUE(world.dials.empty()) << "it waits for the back-off";
  rest(seconds(1));
  sweep();
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(AWarmUp, KeepsWhatMinIdleNeedsOpenBeyondIdleTimeoutAndLendsIt) {
  limits.min_idle = 2;
  limits.idle_timeout = seconds(10);
  TestBorrower& one = leased();
  TestBorrower& two = leased();
  TestBorrower& three = leased();
  for (TestBorrower* each : {&one, &two, &three}) each->release();
  for (int n = 0; n < 60; ++n) {
    rest(seconds(1));
    sweep();
  }
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 2U) << "the third was not needed";
  EXPECT_EQ(snapshot().opened_total(), 3U);
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(CloseCause::idle)], 1U);
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
  EXPECT_EQ(snapshot().closed_total(), 1U);
}

TEST_F(AWarmUp, CountsAConnectionThatIsInspectedAmongThoseThatMinIdleKeeps) {
  limits.min_idle = 1;
  limits.idle_timeout = seconds(10);
  TestBorrower& one = leased();
  TestBorrower& two = leased();
  const FakeConnection& inspected = one.wire();
  one.release();
  two.release();
  rest(seconds(11));
  world.on(0);
  ASSERT_EQ(claim_event(inspected.index, inspected.generation, 0).kind, EventClaim::Kind::inspecting);
  sweep();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
  keep_inspected(inspected.index, world.now);
}

TEST_F(AWarmUp, RenewsWhatMinIdleKeepsWhenItExpires) {
  limits.min_idle = 1;
  limits.idle_timeout = seconds(10);
  limits.expire_time = seconds(30);
  idle_connection();
  rest(seconds(31));
  sweep();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::expired});
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(AWarmUp, NeverPassesTheCapForMinIdle) {
  limits.min_idle = 4;
  leased();
  leased();
  sweep();
  EXPECT_EQ(world.dials.size(), 2U);
}

// ---- surplus connections ----

class ASurplus : public test::PoolScene {
 protected:
  ASurplus() : PoolScene(8) {
    limits.strategy = Strategy::round_robin;
    limits.idle_timeout = seconds(10);
  }
  // Holds that many connections at once, for ten milliseconds each.
  void busy(int at_once) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < at_once; ++n) all.push_back(&leased());
    rest(milliseconds(10));
    for (TestBorrower* one : all) one->release();
  }
  void load(int at_once, Duration time) {
    for (const Instant end = world.now + time; world.now < end; rest(milliseconds(90))) {
      busy(at_once);
      world.on(0);
      destination().sweep(world.now);
    }
  }
};

TEST_F(ASurplus, EndsThoughTheStrategyUsesAllOfThem) {
  busy(8);
  EXPECT_EQ(snapshot().alive(), 8U);
  load(2, seconds(9));
  EXPECT_EQ(snapshot().alive(), 8U) << "eight were lent at once a moment ago";
  load(2, seconds(14));
  EXPECT_EQ(snapshot().alive(), 3U) << "with two, one in fifty would wait";
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(CloseCause::surplus)], 5U);
}

TEST_F(ASurplus, IsNothingThatTheLoadAsksFor) {
  load(6, seconds(40));
  EXPECT_EQ(snapshot().alive(), 6U);
  EXPECT_EQ(snapshot().closed_total(), 0U);
}

TEST_F(ASurplus, IsNotWhatMinIdleKeepsReady) {
  limits.min_idle = 3;
  busy(8);
  load(1, seconds(40));
  EXPECT_EQ(snapshot().alive(), 5U) << "two for the load";
}

TEST_F(ASurplus, IsNothingThatWasOpenedForLater) {
  load(2, seconds(9));
  const std::uint64_t used = snapshot().alive();
  world.on(0);
  destination().warm_up(8, 8, world.now);
  while (!world.dials.empty()) world.dialed();
  rest(milliseconds(1100));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(CloseCause::surplus)], used);
  for (const FakeConnection* wire : world.live) EXPECT_EQ(wire->served, 0U);
}

TEST_F(ASurplus, IsNothingWhileRequestsWaitForAShare) {
  limits.classes = 2;
  busy(8);
  load(1, seconds(9));
  BorrowRequest low;
  low.priority_class = 1;
  for (int n = 0; n < 6; ++n) ASSERT_EQ(borrower_on().borrow(destination(), low), State::leased);
  waiting(low);
  rest(seconds(2));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(snapshot().alive(), 8U);
}

TEST_F(ASurplus, IsNotJudgedByALoadThatBeganLate) {
  world.on(0);
  destination().warm_up(8, 8, world.now);
  while (!world.dials.empty()) world.dialed();
  destination().sweep(world.now);
  rest(seconds(6));
  load(1, milliseconds(4200));
  EXPECT_EQ(snapshot().alive(), 8U);
}

TEST_F(ASurplus, IsNotJudgedByTooFewBorrows) {
  busy(4);
  for (int n = 0; n < 8; ++n) {
    rest(seconds(3));
    busy(1);
    world.on(0);
    destination().sweep(world.now);
  }
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(CloseCause::surplus)], 0U);
}

}  // namespace
}  // namespace carpool::pool
