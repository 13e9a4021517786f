// Unit tests of operator commands to a destination, and of the settings that select the connection to borrow: none of
// them affects borrowed connections.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class Commanded : public test::PoolScene {
 protected:
  Commanded() : PoolScene(4) {}
  void size(std::uint32_t most) {
    limits.size = most;
    world.on(0);
    destination().set_limits(limits, world.now);
  }
  void later(Duration time) {
    rest(time);
    world.on(0);
    destination().sweep(world.now);
  }
  std::vector<TestBorrower*> leases(int count) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < count; ++n) all.push_back(&leased());
    return all;
  }
};

// ---- limits ----

TEST_F(Commanded, ALargerSizeServesTheQueue) {
  limits.size = 1;
  leased();
  TestBorrower& waiter = waiting();
  EXPECT_TRUE(world.dials.empty());
  size(2);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(waiter.state, State::leased);
}

TEST_F(Commanded, ASmallerSizeClosesIdleSurplusAtOnceAndTheRestWhenItComesBack) {
  std::vector<TestBorrower*> all = leases(4);
  all[0]->release();
  size(2);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::config_changed});
  all[1]->release();
  EXPECT_EQ(world.closed.size(), 2U);
  all[2]->release();
  EXPECT_EQ(world.closed.size(), 2U) << "two may stay";
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

TEST_F(Commanded, ASmallerSizeRefusesUntilUseFell) {
  std::vector<TestBorrower*> all = leases(3);
  size(2);
  waiting();
  EXPECT_TRUE(world.dials.empty());
  all[0]->release();
  EXPECT_TRUE(world.dials.empty());
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::config_changed});
  all[1]->release();
  world.deliver_all();
  EXPECT_EQ(snapshot().waiting, 0U);
  EXPECT_EQ(world.closed.size(), 1U);
}

TEST_F(Commanded, ASmallerSizeDrainsSessions) {
  world.next_streams = 1;
  leases(3);
  size(1);
  EXPECT_EQ(snapshot().of(ConnectionStatus::draining), 2U);
}

TEST_F(Commanded, OtherLimitsHoldForWhatIsThere) {
  idle_connection();
  rest(seconds(5));
  limits.idle_timeout = seconds(2);
  size(4);
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
}

// ---- a pool that another one replaces ----

TEST_F(Commanded, AReplacedPoolRefusesItsWaitersInOrderAndWhoeverAsks) {
  limits.size = 1;
  leased();
  TestBorrower& first = waiting();
  TestBorrower& second = waiting({}, 1);
  limits.replaced = true;
  size(1);
  world.deliver_all();
  for (const TestBorrower* one : {&first, &second}) {
    ASSERT_EQ(one->state, State::refused);
    EXPECT_EQ(one->fault->detail, kReplacedPool);
  }
  TestBorrower& late = borrower_on();
  EXPECT_EQ(late.borrow(destination()), State::refused);
  EXPECT_EQ(late.fault->kind, FaultKind::draining);
  EXPECT_TRUE(world.dials.empty());
}

TEST_F(Commanded, AReplacedPoolClosesWhatIsIdleAtOnceAndTheRestWhenItComesBack) {
  std::vector<TestBorrower*> all = leases(3);
  TestBorrower& waiter = waiting();
  all[0]->release();
  world.deliver_all();
  ASSERT_EQ(waiter.state, State::leased);
  all[1]->release();
  waiting({.max_idle = Duration(-1)});
  ASSERT_EQ(world.dials.size(), 1U);
  limits.replaced = true;
  size(4);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::config_changed});
  world.dialed();
  all[2]->release();
  waiter.return_unused();
  EXPECT_EQ(world.closed, std::vector<CloseCause>(4, CloseCause::config_changed)) << "the dial in progress is one";
  EXPECT_TRUE(world.live.empty());
}

TEST_F(Commanded, TheSessionsOfAReplacedPoolDrain) {
  world.next_streams = 2;
  TestBorrower& one = leased();
  limits.replaced = true;
  size(1);
  EXPECT_EQ(snapshot().of(ConnectionStatus::draining), 1U);
  one.release();
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::config_changed});
}

TEST_F(Commanded, AReplacedPoolEndsAtOnceUnlessItIsInUse) {
  TestBorrower& one = leased();
  limits.replaced = true;
  size(1);
  EXPECT_FALSE(destination().reclaim(world.now, seconds(600)));
  one.release();
  EXPECT_TRUE(destination().reclaim(world.now, seconds(600)));
}

TEST_F(Commanded, AReplacedPoolCompletesNoReconnect) {
  for (TestBorrower* one : leases(3)) one->release();
  size(3);
  world.on(0);
  destination().reconnect(world.now);
  ASSERT_EQ(world.dials.size(), 1U) << "one at a time, at the cap";
  limits.replaced = true;
  size(3);
  world.dialed();
  EXPECT_TRUE(world.live.empty());
  EXPECT_TRUE(destination().reclaim(world.now, seconds(600)));
}

TEST_F(Commanded, APoolThatItsOriginHasAgainLendsAsBefore) {
  limits.replaced = true;
  size(1);
  destination().use_again();
  EXPECT_FALSE(destination().limits().replaced);
  idle_connection();
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
  EXPECT_FALSE(destination().reclaim(world.now, seconds(600)));
  limits.replaced = false;
}

// ---- pause ----

TEST_F(Commanded, APauseKeepsItsWaitersAndServesThemAfterwards) {
  TestBorrower& holder = leased();
  destination().pause(world.now);
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  EXPECT_TRUE(world.dials.empty());
  holder.release();
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 1U);
  world.on(0);
  destination().resume(world.now);
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(world.dials.size(), 1U) << "for the second one";
  EXPECT_EQ(two.state, State::waiting);
}

TEST_F(Commanded, APauseWithAnEndIsOverAtThatTimeAndServesItsWaiters) {
  TestBorrower& holder = leased();
  destination().pause(world.now, world.now + seconds(10));
  TestBorrower& one = waiting();
  holder.release();
  later(seconds(9));
  EXPECT_EQ(one.state, State::waiting);
  ASSERT_TRUE(snapshot().paused);
  EXPECT_EQ(snapshot().paused->left, seconds(1));
  EXPECT_EQ(snapshot().paused->age, seconds(9));
  EXPECT_EQ(world.pauses_ended, 0);
  later(seconds(1));
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_FALSE(snapshot().paused);
  EXPECT_EQ(world.pauses_ended, 1);
}

TEST_F(Commanded, ARepeatedPauseHasTheLastEndAndADrainStaysOne) {
  destination().drain(world.now, world.now + seconds(5));
  later(seconds(2));
  destination().pause(world.now);
  later(seconds(20));
  ASSERT_TRUE(snapshot().paused);
  EXPECT_EQ(snapshot().paused->age, seconds(22));
  EXPECT_FALSE(snapshot().paused->left);
  EXPECT_TRUE(snapshot().paused->drains);
  world.on(0);
  destination().resume(world.now);
  EXPECT_FALSE(destination().paused());
  EXPECT_EQ(world.pauses_ended, 0) << "an operator ended it";
}

TEST_F(Commanded, ARestoredPauseIsAsIfItHadBeenOrderedHere) {
  destination().restore_pause({world.now - seconds(3), world.now + seconds(2), true});
  TestBorrower& one = waiting();
  EXPECT_TRUE(world.dials.empty());
  EXPECT_EQ(snapshot().paused->age, seconds(3));
  later(seconds(2));
  EXPECT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(one.state, State::waiting);
}

TEST_F(Commanded, AFullQueueDuringAPauseSaysWhy) {
  limits.max_waiting = 2;
  size(4);
  destination().pause(world.now);
  waiting();
  waiting();
  TestBorrower& refused = borrower_on();
  EXPECT_EQ(refused.borrow(destination()), State::refused);
  EXPECT_EQ(refused.fault->detail, kPausedByOperator);
  world.on(0);
  destination().resume(world.now);
}

TEST_F(Commanded, ADialThatEndsDuringAPauseBecomesIdle) {
  TestBorrower& one = waiting();
  destination().pause(world.now);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  world.on(0);
  destination().resume(world.now);
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(Commanded, ADialThatFailsDuringAPauseRefusesNobody) {
  TestBorrower& one = waiting();
  destination().pause(world.now);
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  rest(seconds(2));
  world.on(0);
  destination().resume(world.now);
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(Commanded, ADrainClosesWhatIsIdleAndWhatComesBack) {
  TestBorrower& holder = leased();
  idle_connection();
  destination().drain(world.now);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::drained});
  TestBorrower& one = waiting();
  holder.release();
  EXPECT_EQ(world.closed, (std::vector<CloseCause>{CloseCause::drained, CloseCause::drained}));
  EXPECT_TRUE(world.live.empty());
  world.on(0);
  destination().resume(world.now);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(Commanded, ADrainClosesAConnectionThatIsInspectedMeanwhile) {
  FakeConnection& wire = idle_connection();
  world.on(0);
  ASSERT_EQ(claim_event(wire.index, wire.generation, 0).kind, EventClaim::Kind::inspecting);
  destination().drain(world.now);
  EXPECT_TRUE(world.closed.empty());
  keep_inspected(wire.index, world.now);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::drained});
}

// ---- reconnect ----

TEST_F(Commanded, AReconnectMakesBeforeItBreaks) {
  FakeConnection& old = idle_connection();
  world.on(0);
  destination().reconnect(world.now);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::reconnect);
  EXPECT_TRUE(world.closed.empty());
  world.dialed();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::reconnect});
  EXPECT_FALSE(world.is_live(old));
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 1U);
}

TEST_F(Commanded, AReconnectAtTheCapBreaksOneAtATime) {
  std::vector<TestBorrower*> all = leases(4);
  for (TestBorrower* one : all) one->release();
  world.on(0);
  destination().reconnect(world.now);
  EXPECT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 3U);
  for (int n = 0; n < 4; ++n) {
    ASSERT_FALSE(world.dials.empty());
    world.dialed();
  }
  EXPECT_EQ(world.closed, std::vector<CloseCause>(4, CloseCause::reconnect));
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 4U);
  EXPECT_EQ(world.most, 4U);
}

TEST_F(Commanded, AReconnectReplacesWhatIsLentWhenItComesBack) {
  TestBorrower& one = leased();
  TestBorrower& two = leased();
  destination().reconnect(world.now);
  EXPECT_TRUE(world.dials.empty());
  one.release();
  two.release();
  EXPECT_EQ(world.closed, (std::vector<CloseCause>{CloseCause::reconnect, CloseCause::reconnect}));
  TestBorrower& next = leased();
  next.release();
  EXPECT_EQ(world.closed.size(), 2U) << "new ones stay";
}

TEST_F(Commanded, AReconnectReplacesAConnectionThatIsInspectedMeanwhile) {
  FakeConnection& old = idle_connection();
  world.on(0);
  ASSERT_EQ(claim_event(old.index, old.generation, 0).kind, EventClaim::Kind::inspecting);
  destination().reconnect(world.now);
  EXPECT_TRUE(world.dials.empty());
  keep_inspected(old.index, world.now);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::reconnect);
  world.dialed();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::reconnect});
  EXPECT_FALSE(world.is_live(old));
}

TEST_F(Commanded, AReconnectDialsOneSuccessorOfAConnectionThatIsInspectedLater) {
  FakeConnection& old = idle_connection();
  world.on(0);
  destination().reconnect(world.now);
  ASSERT_EQ(world.dials.size(), 1U);
  ASSERT_EQ(claim_event(old.index, old.generation, 0).kind, EventClaim::Kind::inspecting);
  keep_inspected(old.index, world.now);
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(Commanded, AReconnectThatFailsKeepsWhatWorks) {
  idle_connection();
  world.on(0);
  destination().reconnect(world.now);
  world.dial_failed();
  EXPECT_EQ(world.live.size(), 1U);
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

// ---- quarantine ----

TEST_F(Commanded, AQuarantinedConnectionIsIdleFirst) {
  limits.size = 1;
  limits.quarantine = milliseconds(50);
  TestBorrower& one = leased();
  TestBorrower& two = waiting();
  one.release();
  world.deliver_all();
  EXPECT_EQ(two.state, State::waiting);
  ASSERT_FALSE(world.wakes.empty());
  EXPECT_EQ(world.wakes.back().first, world.now + milliseconds(50));
  rest(milliseconds(50));
  world.on(0);
  destination().wake(world.now);
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
  two.release();
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
}

// A connection that is inspected when its quarantine ends cannot be borrowed, and the inspection may end on a loop
// whose clock is behind.
TEST_F(Commanded, AQuarantineThatEndsWhileItsConnectionIsInspectedIsNotForgotten) {
  limits.size = 1;
  limits.quarantine = milliseconds(50);
  TestBorrower& one = leased();
  FakeConnection& wire = one.wire();
  TestBorrower& two = waiting();
  one.release();
  world.on(0);
  ASSERT_EQ(claim_event(wire.index, wire.generation, 0).kind, EventClaim::Kind::inspecting);
  const Instant before = world.now;
  rest(milliseconds(50));
  world.wakes.clear();
  destination().wake(world.now);
  world.deliver_all();
  EXPECT_EQ(two.state, State::waiting) << "it is being inspected";
  world.now = before + milliseconds(49);
  keep_inspected(wire.index, world.now);
  ASSERT_EQ(world.wakes.size(), 1U) << "somebody waits, and only time can serve it";
  world.now = world.wakes.front().first;
  destination().wake(world.now);
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(Commanded, AWakeForTheBackOffDoesNotPutOffTheEndOfAQuarantine) {
  limits.size = 2;
  limits.quarantine = milliseconds(50);
  TestBorrower& one = leased();
  waiting().cancel();
  world.dial_failed();  // the next dial in 100 ms
  one.release();
  TestBorrower& two = waiting();
  ASSERT_EQ(world.wakes.size(), 1U);
  EXPECT_EQ(world.wakes.front().first, world.now + milliseconds(50));
  rest(milliseconds(50));
  destination().wake(world.now);
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

// ---- strategies ----

TEST_F(Commanded, RoundRobinUsesEveryConnectionInTurnWhosesoeverItIs) {
  limits.strategy = Strategy::round_robin;
  std::vector<TestBorrower*> all = leases(4);
  for (TestBorrower* one : all) one->release();
  std::set<FakeConnection*> used;
  for (int n = 0; n < 4; ++n) {
    TestBorrower& one = borrower_on(1);
    ASSERT_EQ(one.borrow(destination()), State::leased);
    used.insert(&one.wire());
    one.release();
  }
  EXPECT_EQ(used.size(), 4U);
  EXPECT_EQ(world.moves, 4U) << "a takeover is paid for it";
}

TEST_F(Commanded, RandomUsesThemAllSoonerOrLater) {
  limits.strategy = Strategy::random;
  std::vector<TestBorrower*> all = leases(4);
  for (TestBorrower* one : all) one->release();
  std::set<FakeConnection*> used;
  for (int n = 0; n < 100; ++n) {
    TestBorrower& one = borrower_on();
    ASSERT_EQ(one.borrow(destination()), State::leased);
    used.insert(&one.wire());
    one.release();
  }
  EXPECT_EQ(used.size(), 4U);
}

TEST_F(Commanded, ThreadIdTakesTheOwnLoopsFirst) {
  limits.strategy = Strategy::thread_id;
  TestBorrower& far = leased(1);
  TestBorrower& near = leased(0);
  FakeConnection& own = near.wire();
  near.release();
  far.release();
  for (int n = 0; n < 5; ++n) {
    TestBorrower& one = borrower_on(0);
    ASSERT_EQ(one.borrow(destination()), State::leased);
    EXPECT_EQ(&one.wire(), &own);
    one.release();
  }
  EXPECT_EQ(world.moves, 0U);
}

TEST_F(Commanded, MaximizeOpensUpToTheSizeThoughOneWouldDo) {
  limits.maximize = true;
  idle_connection();
  for (int n = 0; n < 6; ++n) {
    TestBorrower& one = borrower_on();
    ASSERT_EQ(one.borrow(destination()), State::leased);
    one.release();
  }
  EXPECT_EQ(world.dials.size(), 3U);
  EXPECT_EQ(world.most, 4U);
}

}  // namespace
}  // namespace carpool::pool
