// Unit tests of max_tunnels: who waits for a place, and what a place that is returned does.
#include <gtest/gtest.h>

#include "pool/destination/destination.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class AFullTunnelLimit : public test::PoolScene {
 protected:
  AFullTunnelLimit() : PoolScene(4) {
    limits.max_tunnels = 1;
    tunnel.tunnel = true;
  }
  TestBorrower& opened() {
    TestBorrower& one = waiting(tunnel);
    world.dialed();
    world.deliver_all();
    one.lease.become_tunnel();
    return one;
  }
  std::string refusal_of(TestBorrower& one) {
    return one.state == State::refused && one.fault ? one.fault->detail : "not refused";
  }
  BorrowRequest tunnel;
};

TEST_F(AFullTunnelLimit, LetsTheNextTunnelWaitWithoutADialAndOpensItWhenOneEnds) {
  TestBorrower& one = opened();
  TestBorrower& two = waiting(tunnel);
  TestBorrower& three = waiting(tunnel);
  EXPECT_TRUE(world.dials.empty()) << "no connection serves a tunnel without a place";
  EXPECT_FALSE(destination().awaits_dial(two));
  EXPECT_EQ(snapshot().waiting, 2U);
  EXPECT_EQ(audited(), "");
  one.discard(CloseCause::tunnel_ended);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased) << "first come, first served";
  EXPECT_EQ(three.state, State::waiting);
  EXPECT_EQ(audited(), "");
}

TEST_F(AFullTunnelLimit, HoldsUpNoOtherRequest) {
  opened();
  TestBorrower& next = waiting(tunnel);
  leased().release();
  EXPECT_EQ(borrower_on(1).borrow(destination()), State::leased) << "an idle connection is lent at once";
  EXPECT_EQ(next.state, State::waiting);
  EXPECT_EQ(audited(), "");
}

TEST_F(AFullTunnelLimit, GivesTheConnectionOfARefusedUpgradeToTheNextOne) {
  TestBorrower& one = waiting(tunnel);
  world.dialed();
  world.deliver_all();
  TestBorrower& two = waiting(tunnel);
  FakeConnection& wire = one.wire();
  one.release();
  world.deliver_all();
  ASSERT_EQ(two.state, State::leased);
  EXPECT_EQ(&two.wire(), &wire);
  EXPECT_EQ(world.made, 1U);
}

TEST_F(AFullTunnelLimit, PassesThePlaceOfATunnelThatIsNoLongerWantedOn) {
  TestBorrower& one = waiting(tunnel);
  TestBorrower& two = waiting(tunnel);
  EXPECT_EQ(world.dials.size(), 1U);
  one.cancel();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(AFullTunnelLimit, PassesThePlaceOfARefusedTunnelOn) {
  TestBorrower& one = waiting(tunnel);
  TestBorrower& two = waiting(tunnel);
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::refused);
  EXPECT_EQ(two.state, State::waiting);
  EXPECT_EQ(audited(), "");
}

TEST_F(AFullTunnelLimit, ForgetsATunnelThatWaitsForAPlaceWhenItIsCancelled) {
  TestBorrower& one = opened();
  TestBorrower& two = waiting(tunnel);
  two.cancel();
  EXPECT_EQ(snapshot().waiting, 0U);
  EXPECT_EQ(audited(), "");
  one.discard(CloseCause::tunnel_ended);
  EXPECT_TRUE(world.dials.empty());
}

TEST_F(AFullTunnelLimit, RefusesAtOnceWhereNobodyMayWait) {
  limits.max_waiting = 0;
  opened();
  TestBorrower& two = borrower_on();
  two.borrow(destination(), tunnel);
  EXPECT_EQ(refusal_of(two), "too many tunnels");
  EXPECT_EQ(waiting().state, State::waiting) << "others have their share";
}

TEST_F(AFullTunnelLimit, BoundsThoseThatWait) {
  limits.max_waiting = 1;
  opened();
  waiting(tunnel);
  TestBorrower& third = borrower_on();
  third.borrow(destination(), tunnel);
  EXPECT_EQ(refusal_of(third), "too many tunnels");
}

TEST_F(AFullTunnelLimit, OpensThoseThatWaitWhenItIsRaised) {
  opened();
  TestBorrower& two = waiting(tunnel);
  limits.max_tunnels = 2;
  destination().set_limits(limits, world.now);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(AFullTunnelLimit, AnAdmittedTunnelHasNotWaitedForAConnectionBefore) {
  limits.size = 2;
  opened();
  TestBorrower& slow = leased(1);
  TestBorrower& two = waiting(tunnel);
  rest(seconds(10));
  limits.max_tunnels = 2;
  destination().set_limits(limits, world.now);
  ASSERT_EQ(two.state, State::waiting);
  EXPECT_EQ(snapshot().max_wait, seconds(10));
  world.on(1);
  EXPECT_FALSE(slow.lease.wanted(milliseconds(100), world.now)) << "it waits for the connection since now";
  rest(milliseconds(101));
  EXPECT_TRUE(slow.lease.wanted(milliseconds(100), world.now));
  slow.discard(CloseCause::error);
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(two.state, State::leased);
  EXPECT_EQ(two.lease.waited(), seconds(10) + milliseconds(101)) << "the request has waited since it asked";
}

TEST_F(AFullTunnelLimit, RefusesThoseThatWaitWhenThePoolStops) {
  opened();
  TestBorrower& two = waiting(tunnel);
  destination().stop(world.now);
  EXPECT_EQ(audited(), "");
  world.deliver_all();
  EXPECT_EQ(two.state, State::refused);
  EXPECT_EQ(audited(), "");
}

TEST_F(AFullTunnelLimit, LetsThoseThatWaitWaitDuringAPause) {
  TestBorrower& one = opened();
  TestBorrower& two = waiting(tunnel);
  destination().pause(world.now);
  one.discard(CloseCause::tunnel_ended);
  EXPECT_EQ(two.state, State::waiting);
  EXPECT_TRUE(world.dials.empty());
  TestBorrower& three = waiting(tunnel);
  destination().resume(world.now);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased) << "the later one does not overtake it";
  EXPECT_EQ(three.state, State::waiting);
}

}  // namespace
}  // namespace carpool::pool
