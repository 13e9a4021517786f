// Unit tests of a health check's lease: of one named connection, and without a trace in its use counts.
#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::seconds;
using test::FakeConnection;
using test::TestBorrower;
using State = TestBorrower::State;

class AHealthCheck : public test::PoolScene {
 protected:
  AHealthCheck() : PoolScene(2) {}
  Lease lease_idle(const FakeConnection& wire) {
    world.on(0);
    return destination().lease_idle(wire.index, wire.generation, world.now);
  }
};

TEST_F(AHealthCheck, LeasesTheConnectionItNamesAndNobodyElseGetsItMeanwhile) {
  const FakeConnection& wire = idle_connection();
  Lease lease = lease_idle(wire);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease.get(), &wire);
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
  lease.return_unused(world.now);
  world.deliver_all();
}

TEST_F(AHealthCheck, FindsNothingWhereTheConnectionIsLentOrGoneOrOnAnotherLoop) {
  const FakeConnection& wire = idle_connection(0);
  const std::uint32_t index = wire.index, generation = wire.generation;
  world.on(1);
  EXPECT_FALSE(destination().lease_idle(index, generation, world.now)) << "it rests on loop 0";
  TestBorrower& one = borrower_on(0);
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_FALSE(lease_idle(wire)) << "lent";
  one.discard(CloseCause::error);
  world.on(0);
  EXPECT_FALSE(destination().lease_idle(index, generation, world.now)) << "gone";
  EXPECT_FALSE(destination().lease_idle(0xFFFFFF, 1, world.now)) << "never was";
}

TEST_F(AHealthCheck, CountsAsNoUseAndDoesNotInterruptTheIdleTime) {
  limits.idle_timeout = seconds(10);
  const FakeConnection& wire = idle_connection();
  rest(seconds(6));
  lease_idle(wire).return_unused(world.now);
  rest(seconds(6));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle}) << "twelve seconds of rest, checked or not";
}

TEST_F(AHealthCheck, DialsNoReplacementOfTheConnectionThatItHoldsForAMoment) {
  limits.size = 3;
  limits.min_idle = 2;
  FakeConnection& one = idle_connection();
  world.on(0);
  destination().sweep(world.now);
  while (!world.dials.empty()) world.dialed();
  Lease probe = lease_idle(one);
  ASSERT_TRUE(probe);
  world.on(0);
  destination().sweep(world.now);
  EXPECT_TRUE(world.dials.empty()) << "it is idle again soon";
  probe.return_unused(world.now);
  destination().sweep(world.now);
  EXPECT_TRUE(world.dials.empty());
  probe = lease_idle(one);
  probe.discard(CloseCause::unhealthy, world.now);
  destination().sweep(world.now);
  ASSERT_EQ(world.dials.size(), 1U) << "this one is replaced";
  world.dialed();
  borrower_on().borrow(destination());
  destination().sweep(world.now);
  ASSERT_EQ(world.dials.size(), 1U) << "and one that a request has borrowed";
  world.dialed();
}

TEST_F(AHealthCheck, IsNoBorrowHoweverItEnds) {
  idle_connection();
  FakeConnection& wire = idle_connection();
  const Destination::Snapshot before = snapshot();
  const Instant last = destination().last_borrow();
  rest(seconds(1));
  lease_idle(wire).return_unused(world.now);
  EXPECT_EQ(snapshot().borrows, before.borrows);
  lease_idle(wire).discard(CloseCause::unhealthy, world.now);
  EXPECT_EQ(snapshot().borrows, before.borrows);
  EXPECT_EQ(snapshot().restores, before.restores);
  EXPECT_EQ(destination().last_borrow(), last) << "an origin that is only probed is unused";
  EXPECT_EQ(destination().history().size(), before.restores);
}

TEST_F(AHealthCheck, LeavesTheNumberOfUsesAsItWas) {
  const FakeConnection& wire = idle_connection();
  lease_idle(wire).return_unused(world.now);
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_EQ(one.lease.uses_before(), 1U);
}

TEST_F(AHealthCheck, HandsWhatItReturnsToWhoeverWaits) {
  limits.size = 1;
  const FakeConnection& wire = idle_connection();
  Lease lease = lease_idle(wire);
  TestBorrower& one = waiting();
  EXPECT_TRUE(world.dials.empty()) << "the cap is one";
  lease.return_unused(world.now);
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased);
  EXPECT_EQ(&one.wire(), &wire);
}

TEST_F(AHealthCheck, FindsNothingUntilThePauseIsOverThatTheOriginAskedFor) {
  limits.max_cool_down = seconds(60);
  const FakeConnection& wire = idle_connection();
  ASSERT_TRUE(destination().cool_down(seconds(5), 503, world.now));
  EXPECT_FALSE(lease_idle(wire));
  rest(seconds(4));
  EXPECT_FALSE(lease_idle(wire));
  rest(seconds(2));
  Lease lease = lease_idle(wire);
  ASSERT_TRUE(lease) << "the pause is over, and no request has come since";
  lease.return_unused(world.now);
}

TEST_F(AHealthCheck, EndsWhatItFoundDeadWithItsOwnCause) {
  lease_idle(idle_connection()).discard(CloseCause::unhealthy, world.now);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::unhealthy});
  EXPECT_EQ(snapshot().alive(), 0U);
}

}  // namespace
}  // namespace carpool::pool
