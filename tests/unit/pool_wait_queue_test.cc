// Unit tests of the wait queue: order across loops, bounds, and grants whose borrower has cancelled.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::seconds;
using test::TestBorrower;
using State = TestBorrower::State;

class TheWaitQueue : public test::PoolScene {
 protected:
  TheWaitQueue() : PoolScene(2) {}

  static BorrowRequest of_client(char who) {
    BorrowRequest want;
    want.client = static_cast<std::uint64_t>(who);
    return want;
  }
  static BorrowRequest again() {
    BorrowRequest want = of_client('r');
    want.new_connection_only = true;
    return want;
  }
  // Returns the order in which all borrowers are served; each letter is a client or a class.
  std::string served(TestBorrower& holder, const std::vector<std::pair<char, TestBorrower*>>& line) {
    std::string order;
    TestBorrower* last = &holder;
    for (std::size_t n = 0; n < line.size(); ++n) {
      last->release();
      world.deliver_all();
      for (const auto& [who, one] : line) {
        if (one->state != State::leased) continue;
        order += who;
        last = one;
      }
    }
    return order;
  }
  // Returns the first eight turns of two clients: one has a backlog, the other asks for the next as it is served.
  std::string turns_of_two(TestBorrower* last, const BorrowRequest& many, const BorrowRequest& single) {
    std::vector<TestBorrower*> line;
    for (int n = 0; n < 8; ++n) line.push_back(&waiting(many));
    TestBorrower* one = &waiting(single);
    std::string order;
    while (order.size() < 8) {
      last->release();
      world.deliver_all();
      if (one->state == State::leased) {
        order += static_cast<char>(single.client);
        last = std::exchange(one, &waiting(single));
        continue;
      }
      const auto served =
          std::find_if(line.begin(), line.end(), [](auto* waiter) { return waiter->state == State::leased; });
      if (served == line.end()) return order + " and none";
      order += static_cast<char>(many.client);
      last = *served;
      line.erase(served);
    }
    return order;
  }
};

TEST_F(TheWaitQueue, ServesWaitersInOrderAcrossLoops) {
  limits.size = 1;
  TestBorrower& holder = leased(0);
  std::vector<TestBorrower*> line;
  for (int n = 0; n < 6; ++n) {
    line.push_back(&borrower_on(static_cast<LoopId>(n % 2)));
    EXPECT_EQ(line.back()->borrow(destination()), State::waiting);
  }
  TestBorrower* last = &holder;
  for (TestBorrower* next : line) {
    last->release();
    world.deliver_all();
    ASSERT_EQ(next->state, State::leased);
    last = next;
  }
  EXPECT_EQ(world.made, 1U);
}

TEST_F(TheWaitQueue, GivesAReleasedConnectionToTheQueueNotToWhoComesNext) {
  limits.size = 1;
  TestBorrower& holder = leased();
  TestBorrower& first = borrower_on();
  first.borrow(destination());
  holder.release();
  EXPECT_EQ(holder.borrow(destination()), State::waiting) << "no barging";
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
}

TEST_F(TheWaitQueue, GivesAConnectionThatNobodyUsedToNoWaiterThatRefusesItsIdleTime) {
  limits.size = 1;
  FakeConnection& old = idle_connection();
  rest(seconds(40));
  destination().pause(world.now);
  TestBorrower& gone = waiting();
  world.on(0);
  destination().resume(world.now);  // its grant is on its way
  gone.cancel();
  TestBorrower& careful = waiting({.max_idle = seconds(5)});
  world.deliver_all();
  EXPECT_EQ(careful.state, State::waiting);
  EXPECT_FALSE(world.is_live(old));
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(careful.state, State::leased);
}

TEST_F(TheWaitQueue, HandsOnWithinALoopWithoutTouchingTheRegistration) {
  limits.size = 1;
  TestBorrower& holder = leased(1);
  TestBorrower& next = waiting({}, 1);
  holder.release();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
  EXPECT_EQ(world.moves, 0U);
}

TEST_F(TheWaitQueue, RefusesMoreThanMayWait) {
  limits.size = 1;
  limits.max_waiting = 1;
  leased();
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
  TestBorrower& third = borrower_on();
  ASSERT_EQ(third.borrow(destination()), State::refused);
  EXPECT_EQ(third.fault->kind, FaultKind::queue_full);
  EXPECT_EQ(third.fault->detail, "wait queue full");
  EXPECT_EQ(snapshot().waiting, 1U);
}

TEST_F(TheWaitQueue, WithNoPlaceToWaitStillDialsForThoseItHasRoomFor) {
  limits.max_waiting = 0;
  TestBorrower& one = borrower_on();
  TestBorrower& two = borrower_on();
  TestBorrower& three = borrower_on();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  EXPECT_EQ(two.borrow(destination()), State::waiting);
  EXPECT_EQ(three.borrow(destination()), State::refused);
  world.dialed();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(TheWaitQueue, PassesAGrantOnWhenItsBorrowerLeftMeanwhile) {
  limits.size = 1;
  TestBorrower& holder = leased(0);
  TestBorrower& gone = borrower_on(1);
  TestBorrower& next = borrower_on(0);
  gone.borrow(destination());
  next.borrow(destination());
  holder.release();
  gone.cancel();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
  EXPECT_EQ(next.lease.uses_before(), 1U) << "who was gone did not use it";
  EXPECT_TRUE(world.closed.empty());
}

TEST_F(TheWaitQueue, MakesAGrantIdleWhoseBorrowerLeftWhenNobodyElseWaits) {
  TestBorrower& gone = borrower_on();
  gone.borrow(destination());
  world.dialed();
  gone.cancel();
  world.deliver_all();
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 1U);
  TestBorrower& next = borrower_on();
  ASSERT_EQ(next.borrow(destination()), State::leased);
  EXPECT_FALSE(next.lease.reused()) << "nothing ever travelled on it";
}

TEST_F(TheWaitQueue, GetsNoUseOfAConnectionThatItsBorrowerReturnsUnused) {
  limits.size = 1;
  TestBorrower& one = leased(0);
  TestBorrower& next = waiting({}, 1);
  one.return_unused();
  world.deliver_all();
  ASSERT_EQ(next.state, State::leased);
  EXPECT_FALSE(next.lease.reused()) << "nothing ever travelled on it";
  next.return_unused();
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 1U);
  EXPECT_EQ(snapshot().borrows, snapshot().restores);
  TestBorrower& last = borrower_on();
  ASSERT_EQ(last.borrow(destination()), State::leased);
  EXPECT_EQ(last.lease.uses_before(), 0U);
}

TEST_F(TheWaitQueue, DoesNotTakeAGrantForTheSameBorrowersNextRequest) {
  limits.size = 1;
  TestBorrower& holder = leased();
  TestBorrower& one = borrower_on();
  one.borrow(destination());
  holder.release();
  one.cancel();
  EXPECT_EQ(one.borrow(destination()), State::waiting);
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(one.leases, 1);
}

TEST_F(TheWaitQueue, JudgesAgainOnArrivalAndPutsTheBorrowerBackWhereItStood) {
  limits.size = 1;
  limits.expire_time = seconds(10);
  TestBorrower& holder = leased();
  TestBorrower& first = borrower_on();
  TestBorrower& second = borrower_on();
  first.borrow(destination());
  second.borrow(destination());
  holder.release();
  rest(seconds(20));
  world.deliver_all();
  EXPECT_EQ(first.state, State::waiting);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::expired);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
  EXPECT_EQ(second.state, State::waiting);
}

TEST_F(TheWaitQueue, LetsClientsTakeTurns) {
  limits.size = 1;
  TestBorrower& holder = leased();
  std::vector<std::pair<char, TestBorrower*>> line;
  for (const char who : std::string("aaaaaabbc")) {
    BorrowRequest want;
    want.client = static_cast<std::uint64_t>(who);
    line.emplace_back(who, &waiting(want));
  }
  EXPECT_EQ(served(holder, line), "abcabaaaa");
}

TEST_F(TheWaitQueue, ServesAHigherClassMoreOften) {
  limits.size = 1;
  TestBorrower& holder = leased();
  std::vector<std::pair<char, TestBorrower*>> line;
  for (const char who : std::string("lllhhhhhhhhhhhh")) {
    BorrowRequest want;
    want.priority_class = who == 'h' ? 0 : 1;
    line.emplace_back(who, &waiting(want));
  }
  EXPECT_EQ(served(holder, line), "hhhlhhhhlhhhhlh");
}

TEST_F(TheWaitQueue, StarvesNoClassAndNoClient) {
  limits.size = 1;
  std::vector<std::pair<BorrowRequest, TestBorrower*>> all;
  std::map<TestBorrower*, int> count;
  for (unsigned n = 0; n < 12; ++n) {
    BorrowRequest want;
    want.priority_class = static_cast<std::uint8_t>(n % 3);
    want.client = n / 3;
    all.emplace_back(want, &waiting(want));
  }
  world.dialed();
  for (int round = 0; round < 2100; ++round) {
    world.deliver_all();
    for (const auto& [want, one] : all) {
      if (one->state != State::leased) continue;
      ++count[one];
      one->release();
      one->borrow(destination(), want);  // always queued except while it is served
    }
  }
  for (const auto& [want, one] : all) {
    const int share = want.priority_class == 0 ? 400 : want.priority_class == 1 ? 100 : 25;
    EXPECT_NEAR(count[one], share, share / 4 + 2) << "class " << int{want.priority_class} << " client " << want.client;
  }
}

TEST_F(TheWaitQueue, ServesANewClientEarlyHoweverManyRetriesWereServed) {
  limits.size = 1;
  TestBorrower* holder = &leased();
  std::vector<std::pair<char, TestBorrower*>> line;
  for (int n = 0; n < 3; ++n) line.emplace_back('a', &waiting(of_client('a')));
  for (int n = 0; n < 8; ++n) {
    TestBorrower& retry = waiting(again());
    holder->discard(CloseCause::error);
    world.dialed();
    world.deliver_all();
    ASSERT_EQ(retry.state, State::leased);
    holder = &retry;
  }
  line.emplace_back('b', &waiting(of_client('b')));
  EXPECT_EQ(served(*holder, line), "abaa");
}

TEST_F(TheWaitQueue, ServesANewClientEarlyHoweverManyWaitersGaveUp) {
  limits.size = 1;
  TestBorrower& holder = leased();
  std::vector<std::pair<char, TestBorrower*>> line;
  for (int n = 0; n < 3; ++n) line.emplace_back('a', &waiting(of_client('a')));
  for (int n = 0; n < 8; ++n) waiting(again()).cancel();
  std::vector<TestBorrower*> others;
  for (int n = 0; n < 8; ++n) others.push_back(&waiting(of_client('c')));
  for (TestBorrower* one : others) one->cancel();
  line.emplace_back('b', &waiting(of_client('b')));
  EXPECT_EQ(served(holder, line), "abaa");
}

// 'b' asks again whenever it is served, all of 'a' wait from the beginning, and a connection is released again and
// again.
TEST_F(TheWaitQueue, LetsClientsTakeTurnsWhileTheFirstWaiterNeedsTheOtherProtocol) {
  limits.size = 2;
  TestBorrower* last = &leased();
  BorrowRequest stream;
  stream.kind = ProtocolMask::h2_only;
  TestBorrower& first = waiting(stream);
  ASSERT_EQ(world.dials.size(), 1U) << "its own, which takes long";
  EXPECT_EQ(turns_of_two(last, of_client('a'), of_client('b')), "abababab");
  EXPECT_EQ(first.state, State::waiting);
}

TEST_F(TheWaitQueue, LetsClientsTakeTurnsWhileTheFirstWaiterHasNoShare) {
  limits.size = 2;
  limits.classes = 2;
  TestBorrower* last = &leased();
  BorrowRequest low;
  low.priority_class = 1;
  low.client = 'l';
  ASSERT_EQ(borrower_on().borrow(destination(), low), State::waiting);
  world.dialed();
  world.deliver_all();
  TestBorrower& first = waiting(low);  // the other connection is all that its class may have
  EXPECT_EQ(turns_of_two(last, of_client('a'), of_client('b')), "abababab");
  EXPECT_EQ(first.state, State::waiting);
}

TEST_F(TheWaitQueue, CancelsWithoutATrace) {
  limits.size = 1;
  leased();
  TestBorrower& one = borrower_on();
  one.borrow(destination());
  one.cancel();
  one.cancel();
  EXPECT_EQ(snapshot().waiting, 0U);
}

// ---- a long queue ----

double cpu_seconds() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) / 1e9;
}

// Half of the requests are one client's, and each other client's are queued before most of those; then all cancel, from
// the middle outwards.
double cost_of_a_line_of(unsigned many) {
  test::FakeEnvironment world(1);
  Limits limits;
  limits.size = 1;
  limits.max_waiting = many;
  Destination destination(test::origin_named("origin"), limits, world, 1);
  std::deque<TestBorrower> line;
  TestBorrower holder(world, 0);
  holder.borrow(destination);
  const double begin = cpu_seconds();
  for (unsigned n = 0; n < many; ++n) {
    BorrowRequest want;
    want.client = n < many / 2 ? 1 : 1 + n;
    EXPECT_EQ(line.emplace_back(world, LoopId{0}).borrow(destination, want), State::waiting);
  }
  for (unsigned n = 0; n < many; ++n) line[n % 2 == 0 ? (many + n) / 2 : (many - n) / 2].cancel();
  const double cost = cpu_seconds() - begin;
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(holder.state, State::leased);
  holder.release();
  destination.stop(world.now);
  EXPECT_EQ(world.wrong, "");
  return cost;
}

TEST(ALongQueue, CostsEachWhoJoinsOrLeavesAboutAsMuchAsAShortOne) {
  // The least of several runs: other programs share the caches. A walk over the queue would cost a hundred times as
  // much.
  double few = 1e9, many = 1e9;
  for (int n = 0; n < 5; ++n) {
    few = std::min(few, cost_of_a_line_of(2000));
    many = std::min(many, cost_of_a_line_of(20'000));
  }
  EXPECT_LT(many, 30 * few) << "ten times as many took " << many / few << " times as long";
}

}  // namespace
}  // namespace carpool::pool
