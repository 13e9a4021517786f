// Unit tests of Destination: borrowing, validation, leases, tunnels, stop.
#include "pool/destination/destination.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class ADestination : public test::PoolScene {
 protected:
  ADestination() : PoolScene(2) {}
};

// ---- borrowing ----

TEST_F(ADestination, DialsForTheFirstBorrowerAndLendsWhatWasMade) {
  TestBorrower& one = borrower_on();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  EXPECT_EQ(one.state, State::waiting) << "never from inside: by delivery";
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased);
  EXPECT_EQ(&one.wire(), *world.live.begin());
  EXPECT_EQ(one.lease.uses_before(), 0U);
  EXPECT_FALSE(one.lease.reused());
  EXPECT_EQ(one.lease.opened(), OpenCause::first);
}

TEST_F(ADestination, LendsAnIdleConnectionAtOnce) {
  FakeConnection& wire = idle_connection();
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_EQ(&one.wire(), &wire);
  EXPECT_TRUE(one.lease.reused());
  EXPECT_EQ(one.lease.uses_before(), 1U);
  EXPECT_EQ(world.made, 1U);
}

TEST_F(ADestination, CountsNoUseOfASessionThatIsReturnedUnused) {
  world.next_streams = 3;
  leased().return_unused();
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_TRUE(one.lease.shared());
  EXPECT_FALSE(one.lease.reused());
}

TEST_F(ADestination, CountsForEachWaiterOfANewSessionTheUsesBeforeItsOwn) {
  limits.size = 1;
  world.next_streams = 3;
  TestBorrower& first = waiting();
  TestBorrower& second = waiting({}, 1);
  TestBorrower& third = waiting();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(first.lease.uses_before(), 0U);
  EXPECT_FALSE(first.lease.reused());
  EXPECT_EQ(second.lease.uses_before(), 1U);
  EXPECT_EQ(third.lease.uses_before(), 2U);
}

TEST_F(ADestination, KeepsASessionUnderASmallerCapWhileTheOnesThatLeaveAreInUse) {
  limits.size = 2;
  world.next_streams = 2;
  TestBorrower& first = leased();
  ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  TestBorrower& other = borrower_on();
  ASSERT_EQ(other.borrow(destination()), State::leased);
  ASSERT_NE(&first.wire(), &other.wire());
  limits.size = 1;
  world.on(0);
  destination().set_limits(limits, world.now);
  ASSERT_EQ(snapshot().of(ConnectionStatus::draining), 1U);
  other.release();
  world.deliver_all();
  EXPECT_EQ(world.live.size(), 2U) << "one leaves, and one is within the cap";
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

TEST_F(ADestination, TakesAConnectionOfAnotherLoopOverInsteadOfDialing) {
  FakeConnection& wire = idle_connection(0);
  TestBorrower& one = borrower_on(1);
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_EQ(&one.wire(), &wire);
  EXPECT_EQ(wire.watched_on, LoopId{1});
}

TEST_F(ADestination, DialsAnewWhenAConnectionCannotBeTakenOver) {
  idle_connection(0);
  world.attach_fails = true;
  TestBorrower& one = borrower_on(1);
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::error});
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(ADestination, ReportsHowLongItsBorrowerWaited) {
  TestBorrower& one = borrower_on();
  one.borrow(destination());
  rest(milliseconds(30));
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.lease.waited(), milliseconds(30));
}

// ---- validation ----

TEST_F(ADestination, ClosesAnExpiredConnectionWhenItIsMetAndDialsForThatReason) {
  limits.expire_time = seconds(10);
  idle_connection();
  rest(seconds(11));
  TestBorrower& one = borrower_on();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::expired});
  EXPECT_EQ(world.opened.back(), OpenCause::expired);
}

TEST_F(ADestination, ClosesAnExpiredConnectionWhenItIsReleased) {
  limits.expire_time = seconds(10);
  TestBorrower& one = leased();
  rest(seconds(11));
  one.release();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::expired});
  EXPECT_TRUE(world.dials.empty()) << "nobody waits";
}

TEST_F(ADestination, LetsConnectionsOfOneMomentExpireApart) {
  limits.size = 50;
  limits.expire_time = seconds(100);
  std::vector<TestBorrower*> all;
  for (int n = 0; n < 50; ++n) all.push_back(&leased());
  for (TestBorrower* one : all) one->release();
  rest(seconds(95));
  destination().sweep(world.now);
  EXPECT_GT(world.closed.size(), 10U);
  EXPECT_LT(world.closed.size(), 40U);
  rest(seconds(5));
  destination().sweep(world.now);
  EXPECT_EQ(world.closed.size(), 50U) << "never later than asked for";
}

TEST_F(ADestination, ClosesAConnectionThatServedOftenEnough) {
  limits.max_usage = 2;
  TestBorrower& one = leased();
  one.release();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  one.release();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::max_usage});
  EXPECT_EQ(one.borrow(destination()), State::waiting);
}

TEST_F(ADestination, ClosesConnectionsIdleForLongerThanTheIdleTimeout) {
  limits.idle_timeout = seconds(5);
  idle_connection();
  rest(seconds(6));
  borrower_on().borrow(destination());
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
  EXPECT_EQ(world.opened.back(), OpenCause::stale_found);
}

TEST_F(ADestination, SweepsExpiredConnectionsThatNoBorrowFinds) {
  limits.idle_timeout = seconds(5);
  idle_connection();
  rest(seconds(4));
  destination().sweep(world.now);
  EXPECT_TRUE(world.closed.empty());
  rest(seconds(2));
  destination().sweep(world.now);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
}

TEST_F(ADestination, LeavesAConnectionIdleForTooLongForThisBorrowerToOthers) {
  idle_connection();
  rest(seconds(1));
  BorrowRequest careful;
  careful.max_idle = milliseconds(500);
  TestBorrower& one = borrower_on();
  EXPECT_EQ(one.borrow(destination(), careful), State::waiting);
  EXPECT_EQ(world.opened.back(), OpenCause::policy);
  EXPECT_TRUE(world.closed.empty());
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased) << "another borrower takes it, though somebody waits";
}

TEST_F(ADestination, EvictsAtTheCapForABorrowerThatAcceptsNoIdleConnection) {
  limits.size = 1;
  idle_connection();
  rest(seconds(1));
  BorrowRequest careful;
  careful.max_idle = milliseconds(500);
  TestBorrower& one = borrower_on();
  EXPECT_EQ(one.borrow(destination(), careful), State::waiting);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::surplus});
  EXPECT_EQ(world.opened.back(), OpenCause::policy);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(ADestination, ClosesAConnectionThatIsNotProvablyClean) {
  TestBorrower& one = leased();
  one.wire().dirty = true;
  one.release();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::peer_closed});
}

// ---- leases ----

TEST_F(ADestination, CountsADestroyedLeaseAsALeakAndClosesItsConnection) {
  TestBorrower& one = leased();
  one.lose();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::leak});
  EXPECT_EQ(snapshot().leaks, 1U);
  EXPECT_EQ(snapshot().borrows, snapshot().restores);
}

TEST_F(ADestination, DiscardsWithTheGivenCause) {
  TestBorrower& one = leased();
  one.discard(CloseCause::private_);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::private_});
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(CloseCause::private_)], 1U);
}

TEST_F(ADestination, DialsForTheQueueWhenAConnectionIsDiscarded) {
  limits.size = 1;
  TestBorrower& holder = leased();
  TestBorrower& next = borrower_on();
  next.borrow(destination());
  holder.wire().peer_closed = true;
  holder.discard(CloseCause::peer_closed);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::stale_found);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(ADestination, ATunnelKeepsItsPlaceUntilItEnds) {
  limits.size = 2;
  limits.max_tunnels = 1;
  BorrowRequest tunnel;
  tunnel.tunnel = true;
  TestBorrower& one = borrower_on();
  one.borrow(destination(), tunnel);
  world.dialed();
  world.deliver_all();
  one.lease.become_tunnel();
  EXPECT_EQ(snapshot().of(ConnectionStatus::tunnel), 1U);
  TestBorrower& two = borrower_on();
  ASSERT_EQ(two.borrow(destination(), tunnel), State::waiting);
  EXPECT_EQ(snapshot().waiting_for_place, 1U);
  EXPECT_TRUE(world.dials.empty());
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
  EXPECT_EQ(world.dials.size(), 1U) << "others have their share";
  one.discard(CloseCause::tunnel_ended);
  EXPECT_EQ(world.dials.size(), 2U);
}

TEST_F(ADestination, ATunnelThatWasOnlyAskedForGivesItsPlaceBack) {
  limits.max_tunnels = 1;
  BorrowRequest tunnel;
  tunnel.tunnel = true;
  TestBorrower& one = borrower_on();
  one.borrow(destination(), tunnel);
  one.cancel();
  for (int n = 0; n < 3; ++n) {
    one.borrow(destination(), tunnel);
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
    ASSERT_EQ(one.state, State::leased);
    one.release();
  }
}

// ---- stop ----

TEST_F(ADestination, ClosesIdleConnectionsAndRejectsWaitersWhenItStops) {
  limits.size = 2;
  TestBorrower& holder = leased(0);
  idle_connection(1);
  TestBorrower& last = leased(1);
  TestBorrower& waiter = borrower_on(1);
  waiter.borrow(destination());
  destination().stop(world.now);
  world.deliver_all();
  ASSERT_EQ(waiter.state, State::refused);
  EXPECT_EQ(waiter.fault->kind, FaultKind::draining);
  holder.release();
  last.release();
  EXPECT_TRUE(world.live.empty());
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused);
}

TEST_F(ADestination, ClosesADialThatEndsAfterTheStop) {
  TestBorrower& one = borrower_on();
  one.borrow(destination());
  destination().stop(world.now);
  world.dialed();
  world.deliver_all();
  EXPECT_TRUE(world.live.empty());
  EXPECT_EQ(one.state, State::refused);
  EXPECT_EQ(one.refusals, 1);
}

TEST_F(ADestination, DistributesTheAgesOfItsConnectionsAndTheIdleTimesOfIdleOnes) {
  limits.size = 2;
  idle_connection();
  world.now += std::chrono::seconds(5);
  TestBorrower& one = leased();
  leased();
  world.now += std::chrono::milliseconds(200);
  const Destination::Snapshot busy = snapshot();
  EXPECT_EQ((std::array<std::uint32_t, 9>{0, 1, 0, 1}), busy.ages.counts) << "0.2 s and 5.2 s";
  EXPECT_EQ(std::chrono::milliseconds(5400), busy.ages.sum);
  EXPECT_EQ((std::array<std::uint32_t, 9>{}), busy.idle_times.counts) << "none is idle";
  one.release();
  world.now += std::chrono::seconds(1);
  const Destination::Snapshot idle = snapshot();
  EXPECT_EQ((std::array<std::uint32_t, 9>{0, 1}), idle.idle_times.counts) << "a bound belongs to the bucket below it";
  EXPECT_EQ(std::chrono::seconds(1), idle.idle_times.sum);
}

TEST_F(ADestination, ShowsEveryConnectionToAVisitor) {
  struct Seen final : ConnectionVisitor {
    void visit(const ConnectionView& view) override { ++states[view.state]; }
    std::map<ConnectionStatus, int> states;
  };
  limits.size = 3;
  TestBorrower& one = leased();
  leased();
  one.release();
  TestBorrower& two = borrower_on();
  two.borrow(destination());
  borrower_on().borrow(destination());
  Seen seen;
  destination().visit(seen, world.now);
  EXPECT_EQ(seen.states[ConnectionStatus::borrowed], 2);
  EXPECT_EQ(seen.states[ConnectionStatus::connecting], 1);
  world.dialed();
  world.deliver_all();
}

}  // namespace
}  // namespace carpool::pool
