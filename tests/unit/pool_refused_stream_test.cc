// Unit tests of a retry that was refused by a session in use: which session serves it.
#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class ARefusedStream : public test::PoolScene {
 protected:
  ARefusedStream() : PoolScene(1) { world.next_streams = 3; }

  // Returns the wish of a retry that the session of `holder` refused.
  BorrowRequest again_after(const TestBorrower& holder) {
    BorrowRequest again;
    again.new_connection_only = true;
    again.tried = holder.lease.index();
    return again;
  }
};

TEST_F(ARefusedStream, GoesToAnotherSessionIfOneCanBeDialed) {
  limits.size = 2;
  TestBorrower& holder = leased();
  TestBorrower& second = borrower_on();
  ASSERT_EQ(second.borrow(destination()), State::leased);
  rest(milliseconds(1));
  TestBorrower& retry = waiting(again_after(holder));
  ASSERT_EQ(world.dials.size(), 1U);
  second.release();
  world.deliver_all();
  EXPECT_EQ(retry.state, State::waiting) << "the dial takes the last place, and its session will serve";
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(retry.state, State::leased);
  EXPECT_NE(retry.lease.index(), holder.lease.index());
}

TEST_F(ARefusedStream, GoesToAnotherSessionThatIsInUse) {
  limits.size = 2;
  TestBorrower& holder = leased();
  rest(milliseconds(1));
  TestBorrower& other = waiting(again_after(holder));
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(other.state, State::leased);
  rest(milliseconds(1));
  TestBorrower& retry = borrower_on();
  ASSERT_EQ(retry.borrow(destination(), again_after(holder)), State::leased);
  EXPECT_EQ(retry.lease.index(), other.lease.index());
}

TEST_F(ARefusedStream, GoesToTheSameSessionIfTheDialOfAnotherOneFails) {
  limits.size = 2;
  TestBorrower& holder = leased();
  rest(milliseconds(1));
  TestBorrower& retry = waiting(again_after(holder));
  ASSERT_EQ(world.dials.size(), 1U);
  world.dial_failed();
  world.deliver_all();
  ASSERT_EQ(retry.state, State::leased);
  EXPECT_EQ(retry.lease.index(), holder.lease.index());
}

TEST_F(ARefusedStream, GoesToTheSameSessionIfTheOtherOneEndsBeforeItsFirstRequest) {
  limits.size = 2;
  TestBorrower& holder = leased();
  rest(milliseconds(1));
  TestBorrower& retry = waiting(again_after(holder));
  world.next_is_dirty = true;
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(retry.state, State::leased);
  EXPECT_EQ(retry.lease.index(), holder.lease.index());
}

TEST_F(ARefusedStream, GoesToTheSameSessionAtTheLimit) {
  TestBorrower& holder = leased();
  rest(milliseconds(1));
  EXPECT_EQ(borrower_on().borrow(destination(), again_after(holder)), State::leased);
}

}  // namespace
}  // namespace carpool::pool
