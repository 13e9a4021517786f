// Who waits: order across loops, bounds, and grants that find their borrower gone.
#include <gtest/gtest.h>

#include "tests/unit/pool_scene.h"

namespace carpool::pool {
namespace {

using std::chrono::seconds;
using test::Asker;
using State = Asker::State;

class TheLine : public test::PoolScene {
 protected:
  TheLine() : PoolScene(2) {}
};

TEST_F(TheLine, ServesWaitersInOrderAcrossLoops) {
  limits.size = 1;
  Asker& holder = leased(0);
  std::vector<Asker*> line;
  for (int n = 0; n < 6; ++n) {
    line.push_back(&asker(static_cast<LoopId>(n % 2)));
    EXPECT_EQ(line.back()->borrow(destination()), State::waiting);
  }
  Asker* last = &holder;
  for (Asker* next : line) {
    last->release();
    world.deliver_all();
    ASSERT_EQ(next->state, State::leased);
    last = next;
  }
  EXPECT_EQ(world.made, 1U);
}

TEST_F(TheLine, GivesAReleasedConnectionToTheLineNotToWhoComesNext) {
  limits.size = 1;
  Asker& holder = leased();
  Asker& first = asker();
  first.borrow(destination());
  holder.release();
  EXPECT_EQ(holder.borrow(destination()), State::waiting) << "no barging";
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
}

TEST_F(TheLine, HandsOnWithinALoopWithoutTouchingTheRegistration) {
  limits.size = 1;
  Asker& holder = leased(1);
  Asker& next = waiting({}, 1);
  holder.release();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
  EXPECT_EQ(world.moves, 0U);
}

TEST_F(TheLine, RefusesMoreThanMayWait) {
  limits.size = 1;
  limits.max_waiting = 1;
  leased();
  EXPECT_EQ(asker().borrow(destination()), State::waiting);
  Asker& third = asker();
  ASSERT_EQ(third.borrow(destination()), State::refused);
  EXPECT_EQ(third.fault->kind, FaultKind::queue_full);
  EXPECT_EQ(third.fault->detail, "wait queue full");
  EXPECT_EQ(snapshot().waiting, 1U);
}

TEST_F(TheLine, WithNoPlaceToWaitStillDialsForThoseItHasRoomFor) {
  limits.max_waiting = 0;
  Asker& one = asker();
  Asker& two = asker();
  Asker& three = asker();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  EXPECT_EQ(two.borrow(destination()), State::waiting);
  EXPECT_EQ(three.borrow(destination()), State::refused);
  world.dialed();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(TheLine, PassesAGrantOnWhenItsBorrowerLeftMeanwhile) {
  limits.size = 1;
  Asker& holder = leased(0);
  Asker& gone = asker(1);
  Asker& next = asker(0);
  gone.borrow(destination());
  next.borrow(destination());
  holder.release();
  gone.cancel();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
  EXPECT_EQ(next.lease.uses_before(), 1U) << "who was gone did not use it";
  EXPECT_TRUE(world.closed.empty());
}

TEST_F(TheLine, RestsAGrantWhoseBorrowerLeftWhenNobodyElseWaits) {
  Asker& gone = asker();
  gone.borrow(destination());
  world.dialed();
  gone.cancel();
  world.deliver_all();
  EXPECT_EQ(snapshot().of(Shown::idle), 1U);
  Asker& next = asker();
  ASSERT_EQ(next.borrow(destination()), State::leased);
  EXPECT_FALSE(next.lease.reused()) << "nothing ever travelled on it";
}

TEST_F(TheLine, DoesNotTakeAGrantForTheSameBorrowersNextWish) {
  limits.size = 1;
  Asker& holder = leased();
  Asker& one = asker();
  one.borrow(destination());
  holder.release();
  one.cancel();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(one.leases, 1);
}

TEST_F(TheLine, JudgesAgainOnArrivalAndPutsTheBorrowerBackWhereItStood) {
  limits.size = 1;
  limits.expire_time = seconds(10);
  Asker& holder = leased();
  Asker& first = asker();
  Asker& second = asker();
  first.borrow(destination());
  second.borrow(destination());
  holder.release();
  rest(seconds(20));
  world.deliver_all();
  EXPECT_EQ(first.state, State::waiting);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), Opened::expired);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
  EXPECT_EQ(second.state, State::waiting);
}

TEST_F(TheLine, CancelsWithoutATrace) {
  limits.size = 1;
  leased();
  Asker& one = asker();
  one.borrow(destination());
  one.cancel();
  one.cancel();
  EXPECT_EQ(snapshot().waiting, 0U);
}

}  // namespace
}  // namespace carpool::pool
