// Unit tests of the choice of the connection that closes when its place is needed elsewhere.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class AnEviction : public test::PoolScene {
 protected:
  AnEviction() : PoolScene(4) {}
  std::vector<TestBorrower*> leases(int count) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < count; ++n) all.push_back(&leased());
    return all;
  }
};

TEST_F(AnEviction, ClosesTheLongestIdleOneFirst) {
  const std::vector<TestBorrower*> all = leases(3);
  std::vector<FakeConnection*> wires;
  for (const int next : {1, 0, 2}) {
    wires.push_back(&all[static_cast<std::size_t>(next)]->wire());
    all[static_cast<std::size_t>(next)]->release();
    rest(seconds(1));
  }
  for (const FakeConnection* wire : wires) {
    ASSERT_TRUE(world.is_live(*wire));
    world.on(0);
    ASSERT_TRUE(destination().evict(world.now));
    EXPECT_FALSE(world.is_live(*wire));
  }
}

TEST_F(AnEviction, ComparesTheNextOfManyIdleConnectionsEachTime) {
  limits.size = 40;
  const std::vector<TestBorrower*> all = leases(40);
  const FakeConnection& oldest = all[35]->wire();
  all[35]->release();
  rest(seconds(1));
  for (TestBorrower* one : all) {
    if (one->state == State::leased) one->release();
  }
  world.on(0);
  for (int evictions = 0; evictions < 2; ++evictions) ASSERT_TRUE(destination().evict(world.now));
  EXPECT_FALSE(world.is_live(oldest));
}

TEST_F(AnEviction, ClosesTheLeastUsedOneWhenThatIsAsked) {
  limits.evict = Evict::least_used;
  TestBorrower& busy = leased();
  TestBorrower& lazy = leased();
  FakeConnection& used_once = lazy.wire();
  busy.release();
  for (int n = 0; n < 3; ++n) {
    TestBorrower& again = borrower_on();
    again.borrow(destination());
    again.release();
  }
  lazy.release();  // it is used most recently, but least often
  world.on(0);
  EXPECT_TRUE(destination().evict(world.now));
  EXPECT_FALSE(world.is_live(used_once));
}

TEST_F(AnEviction, DrainsTheSessionWithTheFewestUsersForThoseWhoNeedTheOtherKind) {
  limits.size = 2;
  world.next_streams = 3;
  TestBorrower& first = leased();
  for (int users = 0; users < 2; ++users) ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  ASSERT_EQ(world.dials.size(), 1U) << "the first session is full";
  world.dialed();
  ASSERT_NE(&leased().wire(), &first.wire());
  BorrowRequest h1;
  h1.kind = ProtocolMask::h1_only;
  waiting(h1);
  FakeConnection& busy = first.wire();
  first.release();
  EXPECT_EQ(&leased().wire(), &busy) << "the other session has one user and admits no new one";
}

// A session whose origin lowered its stream limit to 0 and keeps it there.
class AStreamlessSession : public AnEviction {
 protected:
  AStreamlessSession() {
    limits.size = 1;
    world.next_streams = 3;
    TestBorrower& first = leased();
    world.set_streams(destination(), first.wire(), 0);
    first.release();
  }
  void pass(Duration time) {
    world.now += time;
    world.on(0);
    destination().sweep(world.now);
    world.deliver_all();
  }
};

TEST_F(AStreamlessSession, GivesItsPlaceToAWaiterAfterASecond) {
  TestBorrower& next = waiting();
  pass(milliseconds(900));
  EXPECT_TRUE(world.closed.empty()) << "its origin may allow streams soon";
  pass(milliseconds(200));
  ASSERT_EQ(world.closed, std::vector<CloseCause>{CloseCause::surplus});
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
  EXPECT_EQ(snapshot().opened[static_cast<std::size_t>(OpenCause::policy)], 0U);
}

TEST_F(AStreamlessSession, StaysIfNobodyWaits) {
  pass(seconds(2));
  EXPECT_TRUE(world.closed.empty());
  FakeConnection& session = **world.live.begin();
  world.set_streams(destination(), session, 1);
  EXPECT_EQ(&leased().wire(), &session);
}

}  // namespace
}  // namespace carpool::pool
