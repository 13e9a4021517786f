// A destination: borrowing, judgement, leases, tunnels, the end.
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
  Asker& one = asker();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  EXPECT_EQ(one.state, State::waiting) << "never from inside: by delivery";
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased);
  EXPECT_EQ(&one.wire(), *world.live.begin());
  EXPECT_EQ(one.lease.uses_before(), 0U);
  EXPECT_FALSE(one.lease.reused());
  EXPECT_EQ(one.lease.opened(), Opened::first);
}

TEST_F(ADestination, LendsWhatRestsAtOnce) {
  Wire& wire = resting();
  Asker& one = asker();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_EQ(&one.wire(), &wire);
  EXPECT_TRUE(one.lease.reused());
  EXPECT_EQ(one.lease.uses_before(), 1U);
  EXPECT_EQ(world.made, 1U);
}

TEST_F(ADestination, TakesAConnectionOfAnotherLoopOverInsteadOfDialing) {
  Wire& wire = resting(0);
  Asker& one = asker(1);
  ASSERT_EQ(one.borrow(destination()), State::leased);
  EXPECT_EQ(&one.wire(), &wire);
  EXPECT_EQ(wire.watched_on, LoopId{1});
}

TEST_F(ADestination, DialsAnewWhenAConnectionCannotBeTakenOver) {
  resting(0);
  world.attach_fails = true;
  Asker& one = asker(1);
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::error});
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(ADestination, TellsHowLongItsBorrowerStoodInLine) {
  Asker& one = asker();
  one.borrow(destination());
  rest(milliseconds(30));
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.lease.waited(), milliseconds(30));
}

// ---- judgement ----

TEST_F(ADestination, ClosesAnExpiredConnectionWhenItIsMetAndDialsForThatReason) {
  limits.expire_time = seconds(10);
  resting();
  rest(seconds(11));
  Asker& one = asker();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::expired});
  EXPECT_EQ(world.opened.back(), Opened::expired);
}

TEST_F(ADestination, ClosesAnExpiredConnectionWhenItIsReleased) {
  limits.expire_time = seconds(10);
  Asker& one = leased();
  rest(seconds(11));
  one.release();
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::expired});
  EXPECT_TRUE(world.dials.empty()) << "nobody waits";
}

TEST_F(ADestination, LetsConnectionsOfOneMomentExpireApart) {
  limits.size = 50;
  limits.expire_time = seconds(100);
  std::vector<Asker*> all;
  for (int n = 0; n < 50; ++n) all.push_back(&leased());
  for (Asker* one : all) one->release();
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
  Asker& one = leased();
  one.release();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  one.release();
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::max_usage});
  EXPECT_EQ(one.borrow(destination()), State::waiting);
}

TEST_F(ADestination, ClosesWhatRestedLongerThanTheIdleTimeout) {
  limits.idle_timeout = seconds(5);
  resting();
  rest(seconds(6));
  asker().borrow(destination());
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::idle});
  EXPECT_EQ(world.opened.back(), Opened::stale_found);
}

TEST_F(ADestination, SweepsWhatNobodyMeets) {
  limits.idle_timeout = seconds(5);
  resting();
  rest(seconds(4));
  destination().sweep(world.now);
  EXPECT_TRUE(world.closed.empty());
  rest(seconds(2));
  destination().sweep(world.now);
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::idle});
}

TEST_F(ADestination, LeavesAConnectionThatRestedTooLongForThisBorrowerToOthers) {
  resting();
  rest(seconds(1));
  Want careful;
  careful.max_idle = milliseconds(500);
  Asker& one = asker();
  EXPECT_EQ(one.borrow(destination(), careful), State::waiting);
  EXPECT_EQ(world.opened.back(), Opened::policy);
  EXPECT_TRUE(world.closed.empty());
  EXPECT_EQ(asker().borrow(destination()), State::leased) << "another borrower takes it, though somebody waits";
}

TEST_F(ADestination, MakesRoomAtTheCapForABorrowerWhoRefusesEverythingThatRests) {
  limits.size = 1;
  resting();
  rest(seconds(1));
  Want careful;
  careful.max_idle = milliseconds(500);
  Asker& one = asker();
  EXPECT_EQ(one.borrow(destination(), careful), State::waiting);
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::surplus});
  EXPECT_EQ(world.opened.back(), Opened::policy);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(ADestination, ClosesAConnectionThatIsNotProvablyClean) {
  Asker& one = leased();
  one.wire().dirty = true;
  one.release();
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::peer_closed});
}

// ---- leases ----

TEST_F(ADestination, CountsALeaseThatDiesAsALeakAndClosesItsConnection) {
  Asker& one = leased();
  one.lose();
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::leak});
  EXPECT_EQ(snapshot().leaks, 1U);
  EXPECT_EQ(snapshot().borrows, snapshot().restores);
}

TEST_F(ADestination, DiscardsWithTheCauseItIsTold) {
  Asker& one = leased();
  one.discard(Closed::private_);
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::private_});
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(Closed::private_)], 1U);
}

TEST_F(ADestination, DialsForTheLineWhenAConnectionIsDiscarded) {
  limits.size = 1;
  Asker& holder = leased();
  Asker& next = asker();
  next.borrow(destination());
  holder.wire().peer_closed = true;
  holder.discard(Closed::peer_closed);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), Opened::stale_found);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(ADestination, ATunnelKeepsItsPlaceUntilItEnds) {
  limits.size = 2;
  limits.max_tunnels = 1;
  Want tunnel;
  tunnel.tunnel = true;
  Asker& one = asker();
  one.borrow(destination(), tunnel);
  world.dialed();
  world.deliver_all();
  one.lease.become_tunnel();
  EXPECT_EQ(snapshot().of(Shown::tunnel), 1U);
  Asker& two = asker();
  ASSERT_EQ(two.borrow(destination(), tunnel), State::refused);
  EXPECT_EQ(two.fault->detail, "too many tunnels");
  EXPECT_EQ(two.borrow(destination()), State::waiting) << "others have their share";
  one.discard(Closed::tunnel_ended);
  EXPECT_EQ(asker().borrow(destination(), tunnel), State::waiting);
}

TEST_F(ADestination, ATunnelThatWasOnlyAskedForGivesItsPlaceBack) {
  limits.max_tunnels = 1;
  Want tunnel;
  tunnel.tunnel = true;
  Asker& one = asker();
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

// ---- the end ----

TEST_F(ADestination, StopsLendingClosesWhatRestsAndRefusesWhoWaits) {
  limits.size = 2;
  Asker& holder = leased(0);
  resting(1);
  Asker& last = leased(1);
  Asker& waiter = asker(1);
  waiter.borrow(destination());
  destination().stop(world.now);
  world.deliver_all();
  ASSERT_EQ(waiter.state, State::refused);
  EXPECT_EQ(waiter.fault->kind, FaultKind::draining);
  holder.release();
  last.release();
  EXPECT_TRUE(world.live.empty());
  EXPECT_EQ(asker().borrow(destination()), State::refused);
}

TEST_F(ADestination, ClosesADialThatEndsAfterTheStop) {
  Asker& one = asker();
  one.borrow(destination());
  destination().stop(world.now);
  world.dialed();
  world.deliver_all();
  EXPECT_TRUE(world.live.empty());
  EXPECT_EQ(one.state, State::refused);
  EXPECT_EQ(one.refusals, 1);
}

TEST_F(ADestination, ShowsEveryConnectionToAVisitor) {
  struct Seen final : ConnectionVisitor {
    void visit(const ConnectionView& view) override { ++states[view.state]; }
    std::map<Shown, int> states;
  };
  limits.size = 3;
  Asker& one = leased();
  leased();
  one.release();
  Asker& two = asker();
  two.borrow(destination());
  asker().borrow(destination());
  Seen seen;
  destination().visit(seen, world.now);
  EXPECT_EQ(seen.states[Shown::borrowed], 2);
  EXPECT_EQ(seen.states[Shown::connecting], 1);
  world.dialed();
  world.deliver_all();
}

}  // namespace
}  // namespace carpool::pool
