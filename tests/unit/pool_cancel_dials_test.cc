// Unit tests of cancelled dials: unneeded dials that are cancelled, and those that continue for the next borrower.
#include <gtest/gtest.h>

#include "pool/directory/directory.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class ASurplusDial : public test::PoolScene {
 protected:
  ASurplusDial() : PoolScene(4) {}
  // A sweep, half a second after the last one.
  void sweep() {
    rest(milliseconds(500));
    world.on(0);
    destination().sweep(world.now);
    world.deliver_all();
  }
  void sweep_often() {
    for (int n = 0; n < 5; ++n) sweep();
  }
  std::uint64_t surplus() { return snapshot().closed[static_cast<std::size_t>(CloseCause::surplus)]; }
};

BorrowRequest only(ProtocolMask kind) {
  BorrowRequest want;
  want.kind = kind;
  return want;
}

TEST_F(ASurplusDial, IsCancelledWhenItLastsExceptTheOldest) {
  std::vector<TestBorrower*> all;
  for (int n = 0; n < 4; ++n) all.push_back(&waiting({}, static_cast<LoopId>(n % 2)));
  const std::uint32_t oldest = world.dials.front().reservation->index();
  for (TestBorrower* one : all) one->cancel();
  sweep_often();
  EXPECT_EQ(surplus(), 3U);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.dials.front().reservation->index(), oldest);
  EXPECT_EQ(snapshot().alive(), 1U);
  EXPECT_EQ(snapshot().failed_total(), 0U);
}

TEST_F(ASurplusDial, ContinuesForTheNextBorrowerWhileItIsYoung) {
  waiting().cancel();
  waiting().cancel();
  rest(milliseconds(400));
  world.on(0);
  destination().sweep(world.now);
  destination().sweep(world.now);
  world.deliver_all();
  EXPECT_EQ(world.dials.size(), 1U) << "the second one waited for the dial of the first";
  TestBorrower& next = waiting();
  EXPECT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
}

TEST_F(ASurplusDial, ContinuesWhenAConnectionServedItsBorrowerFirst) {
  TestBorrower& holder = leased();
  TestBorrower& other = leased();
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  holder.release();
  other.release();
  world.deliver_all();
  sweep();
  EXPECT_EQ(surplus(), 0U) << "who comes next would dial again";
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(ASurplusDial, ContinuesIfABorrowerNeedsItWhenTheCancellationArrives) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  rest(seconds(2));
  one.cancel();
  two.cancel();
  world.on(1);
  destination().sweep(world.now);
  destination().sweep(world.now);
  EXPECT_FALSE(world.mail[0].empty());
  waiting({}, 1);
  waiting({}, 1);
  world.deliver_all();
  EXPECT_EQ(world.recalled, 0U);
  EXPECT_EQ(world.dials.size(), 2U);
}

TEST_F(ASurplusDial, ContinuesIfOnlyOneCheckFoundItSurplus) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  rest(seconds(2));
  one.cancel();
  two.cancel();
  sweep();
  waiting();
  waiting();
  sweep();
  EXPECT_EQ(world.recalled, 0U);
  EXPECT_EQ(world.dials.size(), 2U);
}

TEST_F(ASurplusDial, IsCancelledOnceAndContinuesAfterTcpConnected) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  one.cancel();
  two.cancel();
  world.dials_are_past_tcp = true;
  sweep_often();
  EXPECT_EQ(world.recalled, 2U) << "each once";
  EXPECT_EQ(world.dials.size(), 2U);
}

TEST_F(ASurplusDial, IsKeptForMinIdle) {
  limits.min_idle = 3;
  for (int n = 0; n < 4; ++n) waiting().cancel();
  sweep_often();
  EXPECT_EQ(world.dials.size(), 3U);
  EXPECT_EQ(surplus(), 0U);
}

TEST_F(ASurplusDial, IsNotCancelledWhenItWasBegunForFutureDemand) {
  world.on(0);
  EXPECT_EQ(destination().warm_up(4, 4, world.now), 4U);
  sweep_often();
  EXPECT_EQ(world.dials.size(), 4U);
}

TEST_F(ASurplusDial, EndsBesideASessionThatServesAllWaiters) {
  limits.expected_streams = 0;
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  ASSERT_EQ(world.dials.size(), 2U) << "two are enough to find out";
  world.next_streams = 100;
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(two.state, State::leased);
  EXPECT_TRUE(world.dials.empty());
  EXPECT_EQ(surplus(), 1U);
}

TEST_F(ASurplusDial, ContinuesIfItIsItsLoopsOnlyDialForASession) {
  limits.expected_streams = 0;
  waiting({}, 0);
  waiting({}, 1);
  world.next_streams = 100;
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(ASurplusDial, GivesItsSlotToADialOfAnotherProtocol) {
  limits.size = 1;
  limits.expected_streams = 10;
  waiting(only(ProtocolMask::h1_only)).cancel();
  TestBorrower& other = waiting(only(ProtocolMask::h2_only));
  world.deliver_all();
  EXPECT_EQ(surplus(), 1U);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.dials.front().reservation->kind(), ProtocolMask::h2_only);
  world.next_streams = 10;
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(other.state, State::leased);
}

TEST_F(ASurplusDial, IsAskedForItsSlotOnceThoughItCannotGiveIt) {
  limits.size = 1;
  limits.expected_streams = 10;
  waiting(only(ProtocolMask::h1_only)).cancel();
  world.dials_are_past_tcp = true;
  waiting(only(ProtocolMask::h2_only));
  world.deliver_all();
  EXPECT_EQ(world.recalled, 1U);
  world.next_streams = 10;
}

TEST(ADialUnderTheTotal, GivesItsSlotToAnotherOriginWhenItIsSurplus) {
  test::FakeEnvironment world(2);
  Directory directory({.max_connections = 1}, world, 2);
  Destination& silent = **directory.at(test::origin_named("silent"), {});
  Destination& other = **directory.at(test::origin_named("other"), {});
  TestBorrower gone(world, 0), one(world, 1);
  gone.borrow(silent);
  gone.cancel();
  ASSERT_EQ(one.borrow(other), State::waiting);
  world.deliver_all();
  EXPECT_EQ(world.given_up, 1U);
  EXPECT_EQ(directory.connections(), 1U);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  one.release();
  directory.stop(world.now);
  world.deliver_all();
}

TEST(ADialUnderTheTotal, IsNotTakenFromAWaiterThatNeedsIt) {
  test::FakeEnvironment world(2);
  Directory directory({.max_connections = 1}, world, 2);
  Destination& first = **directory.at(test::origin_named("first"), {});
  Destination& second = **directory.at(test::origin_named("second"), {});
  TestBorrower patient(world, 0), other(world, 1);
  patient.borrow(first);
  other.borrow(second);
  world.deliver_all();
  EXPECT_EQ(world.given_up, 0U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(patient.state, State::leased);
  patient.release();
  world.deliver_all();
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(other.state, State::leased);
  other.release();
  directory.stop(world.now);
  world.deliver_all();
}

}  // namespace
}  // namespace carpool::pool
