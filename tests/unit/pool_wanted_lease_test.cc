// Unit tests of Lease::wanted(): whose end would serve a waiter, and for how many of the waiters.
#include <gtest/gtest.h>

#include "pool/destination/destination.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

constexpr Duration kMinWait = milliseconds(100);

class AWantedLease : public test::PoolScene {
 protected:
  explicit AWantedLease(std::uint32_t size = 2) : PoolScene(size) { limits.expected_streams = 1; }

  bool wanted(TestBorrower& holder) { return holder.lease.wanted(kMinWait, world.now); }
  BorrowRequest of_class(std::uint8_t level) {
    BorrowRequest want;
    want.priority_class = level;
    return want;
  }
  TestBorrower& leased_as(const BorrowRequest& want) {
    TestBorrower& one = waiting(want);
    world.dialed();
    world.deliver_all();
    EXPECT_EQ(one.state, State::leased);
    return one;
  }
};

TEST_F(AWantedLease, NeedsAWaiterThatHasWaited) {
  TestBorrower& one = leased();
  TestBorrower& two = leased();
  rest(seconds(60));
  EXPECT_FALSE(wanted(one)) << "nobody waits";
  TestBorrower& waiter = waiting();
  EXPECT_FALSE(wanted(one)) << "it may be served in a moment";
  rest(kMinWait);
  EXPECT_TRUE(wanted(one));
  EXPECT_TRUE(wanted(two));
  waiter.cancel();
  EXPECT_FALSE(wanted(one)) << "it left";
}

TEST_F(AWantedLease, IsOneForEachWaiterWhateverOfItsPlaceIsStillComing) {
  TestBorrower& one = leased();
  TestBorrower& two = leased();
  TestBorrower& waiter = waiting();
  rest(kMinWait);
  ASSERT_TRUE(wanted(one));
  one.discard(CloseCause::error);
  EXPECT_FALSE(wanted(two)) << "the place is being freed or dialed";
  world.dialed();
  EXPECT_FALSE(wanted(two));
  world.deliver_all();
  EXPECT_EQ(waiter.state, State::leased);
  EXPECT_FALSE(wanted(two));
}

TEST_F(AWantedLease, IsNoneWhileADialMayStillServe) {
  TestBorrower& one = leased();
  waiting();
  rest(seconds(1));
  EXPECT_EQ(world.dials.size(), 1U);
  EXPECT_FALSE(wanted(one));
}

TEST_F(AWantedLease, IsNoneWhileAnOperatorPausesTheOrigin) {
  TestBorrower& one = leased();
  leased();
  waiting();
  rest(kMinWait);
  ASSERT_TRUE(wanted(one));
  destination().pause(world.now);
  EXPECT_FALSE(wanted(one));
  destination().resume(world.now);
  EXPECT_TRUE(wanted(one));
}

class AWantedStream : public AWantedLease {
 protected:
  AWantedStream() : AWantedLease(1) {
    world.next_streams = 2;
    limits.expected_streams = 2;
  }
};

TEST_F(AWantedStream, IsWantedWhenTheStreamsAreAtTheirLimit) {
  TestBorrower& one = leased();
  TestBorrower& two = borrower_on(1);
  rest(seconds(1));
  EXPECT_FALSE(wanted(one)) << "a stream is free";
  ASSERT_EQ(two.borrow(destination()), State::leased);
  TestBorrower& waiter = waiting();
  rest(kMinWait);
  EXPECT_TRUE(wanted(one));
  EXPECT_TRUE(wanted(two));
  one.release();
  world.deliver_all();
  EXPECT_EQ(waiter.state, State::leased);
  EXPECT_FALSE(wanted(two));
}

TEST_F(AWantedStream, IsNotWantedByAWaiterForHttp1) {
  TestBorrower& one = leased();
  BorrowRequest want;
  want.kind = ProtocolMask::h1_only;
  waiting(want);
  rest(seconds(1));
  EXPECT_FALSE(wanted(one));
}

// A session that accepts no stream any more frees its place with its last one.
TEST_F(AWantedStream, IsWantedOnASessionThatEndsOnlyIfItIsTheLastOne) {
  TestBorrower& one = leased();
  TestBorrower& two = borrower_on(1);
  ASSERT_EQ(two.borrow(destination()), State::leased);
  waiting();
  rest(kMinWait);
  world.retire(destination(), one.wire(), CloseCause::goaway);
  EXPECT_FALSE(wanted(one));
  EXPECT_FALSE(wanted(two));
  one.release();
  EXPECT_TRUE(wanted(two));
}

class AWantedShare : public AWantedLease {
 protected:
  AWantedShare() : AWantedLease(8) { limits.classes = 2; }  // six for the lower class
};

TEST_F(AWantedShare, IsWantedByTheSameClassThoughThePoolHasRoom) {
  TestBorrower& high = leased_as(of_class(0));
  TestBorrower& low = leased_as(of_class(1));
  for (int n = 0; n < 5; ++n) leased_as(of_class(1));
  waiting(of_class(1));
  rest(kMinWait);
  EXPECT_TRUE(world.dials.empty());
  EXPECT_TRUE(wanted(low));
  EXPECT_FALSE(wanted(high)) << "its end gives no share of the lower class";
  leased_as(of_class(0));
  rest(kMinWait);
  EXPECT_FALSE(wanted(high)) << "nor if the pool is full";
  waiting(of_class(0));
  rest(kMinWait);
  EXPECT_TRUE(wanted(high));
}

}  // namespace
}  // namespace carpool::pool
