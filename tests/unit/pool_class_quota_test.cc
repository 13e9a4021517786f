// Unit tests of priority classes: the share of the cap left to the higher ones, and freedom from starvation.
#include "pool/queue/class_quota.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using test::TestBorrower;
using State = TestBorrower::State;

// ---- the count ----

TEST(ClassQuota, LeaveAPartToTheHigherClasses) {
  ClassQuota shares;
  shares.set(2, 8);
  EXPECT_EQ(shares.limit(1), 6U) << "a quarter is the higher one's";
  shares.set(4, 16);
  EXPECT_EQ(shares.limit(1), 14U);
  EXPECT_EQ(shares.limit(2), 12U);
  EXPECT_EQ(shares.limit(3), 10U);
}

TEST(ClassQuota, LeaveAPlaceToTheHigherClassesInASmallPoolToo) {
  for (unsigned classes = 2; classes <= ClassQuota::kMaxClasses; ++classes) {
    for (std::uint64_t whole = 2; whole < 20; ++whole) {
      ClassQuota shares;
      shares.set(classes, whole);
      for (unsigned level = 1; level < classes; ++level) EXPECT_LT(shares.limit(level), whole);
    }
    ClassQuota alone;
    alone.set(classes, 1);
    EXPECT_EQ(alone.limit(classes - 1), 1U) << "one connection serves all";
  }
}

TEST(ClassQuota, LeaveTheLowestClassSomethingHoweverSmallThePool) {
  for (unsigned classes = 2; classes <= ClassQuota::kMaxClasses; ++classes) {
    for (std::uint64_t whole = 1; whole < 20; ++whole) {
      ClassQuota shares;
      shares.set(classes, whole);
      EXPECT_GE(shares.limit(classes - 1) * 2, whole);
      EXPECT_TRUE(shares.acquire(classes - 1));
    }
  }
}

TEST(ClassQuota, CountALeaseForItsClassAndForThoseAboveIt) {
  ClassQuota shares;
  shares.set(3, 12);  // 10 and 8
  for (int n = 0; n < 8; ++n) EXPECT_TRUE(shares.acquire(2));
  EXPECT_FALSE(shares.acquire(2)) << "its own share";
  EXPECT_TRUE(shares.acquire(1));
  EXPECT_TRUE(shares.acquire(1));
  EXPECT_FALSE(shares.acquire(1)) << "those below it count";
  EXPECT_TRUE(shares.acquire(0)) << "never bound";
  shares.release(2);
  EXPECT_TRUE(shares.acquire(1));
  EXPECT_FALSE(shares.acquire(2)) << "the class above has it now";
}

TEST(ClassQuota, KnowHowManyMustWaitForOne) {
  ClassQuota shares;
  shares.set(3, 12);  // 10 and 8
  EXPECT_EQ(shares.held_back({5, 6, 7, 0}), 3U) << "ten of thirteen";
  EXPECT_EQ(shares.held_back({5, 0, 11, 0}), 3U);
  for (int n = 0; n < 8; ++n) ASSERT_TRUE(shares.acquire(2));
  EXPECT_EQ(shares.held_back({0, 2, 1, 0}), 1U);
  EXPECT_EQ(shares.held_back({9, 3, 0, 0}), 1U);
}

TEST(ClassQuota, AreNoLimitWhereThereAreNoClasses) {
  ClassQuota shares;
  shares.set(0, 1);
  for (int n = 0; n < 1000; ++n) EXPECT_TRUE(shares.acquire(3));
  EXPECT_FALSE(shares.limited());
}

TEST(ClassQuota, AreExactUnderThreads) {
  ClassQuota shares;
  shares.set(2, 8);
  std::atomic<int> held{0};
  std::atomic<int> most{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50'000; ++n) {
        if (!shares.acquire(1)) continue;
        const int now = held.fetch_add(1) + 1;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
        held.fetch_sub(1);
        shares.release(1);
      }
    });
  }
  threads.clear();
  EXPECT_LE(most, 6);
  EXPECT_EQ(shares.held(1), 0U);
}

// ---- a destination with classes ----

class Classes : public test::PoolScene {
 protected:
  Classes() : PoolScene(4) { limits.classes = 2; }  // the lower one has three
  static BorrowRequest of(std::uint8_t priority_class) {
    BorrowRequest want;
    want.priority_class = priority_class;
    return want;
  }
  void serve() {
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
  }
  std::vector<TestBorrower*> ask(int count, std::uint8_t priority_class) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < count; ++n) {
      all.push_back(&borrower_on(static_cast<LoopId>(n % 2)));
      all.back()->borrow(destination(), of(priority_class));
    }
    return all;
  }
  static int served(const std::vector<TestBorrower*>& all) {
    int count = 0;
    for (const TestBorrower* one : all) count += one->state == State::leased ? 1 : 0;
    return count;
  }
};

TEST_F(Classes, TheLowerOneLeavesAConnectionToTheHigher) {
  const std::vector<TestBorrower*> low = ask(6, 1);
  EXPECT_EQ(world.dials.size(), 3U) << "nobody dials for one who has no share";
  serve();
  EXPECT_EQ(served(low), 3);
  TestBorrower& high = borrower_on();
  EXPECT_EQ(high.borrow(destination(), of(0)), State::waiting);
  EXPECT_EQ(world.dials.size(), 1U);
  serve();
  EXPECT_EQ(high.state, State::leased) << "past six who wait for their own";
  const Destination::Snapshot now = snapshot();
  ASSERT_EQ(now.class_count, 2U);
  EXPECT_EQ(now.classes[1].waiting, 3U);
  EXPECT_EQ(now.classes[1].leases, 3U);
  EXPECT_EQ(now.classes[1].limit, 3U);
  EXPECT_EQ(now.classes[0].leases, 1U);
}

TEST_F(Classes, WhatIsIdleForTheHigherOneIsNotLentToTheLower) {
  const std::vector<TestBorrower*> high = ask(4, 0);
  serve();
  for (TestBorrower* one : high) one->release();
  ASSERT_EQ(snapshot().of(ConnectionStatus::idle), 4U);
  const std::vector<TestBorrower*> low = ask(4, 1);
  world.deliver_all();
  EXPECT_EQ(served(low), 3);
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 1U);
  EXPECT_EQ(borrower_on().borrow(destination(), of(1)), State::waiting);
  EXPECT_EQ(borrower_on().borrow(destination(), of(0)), State::leased) << "past the one who waits for its share";
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 0U);
}

TEST_F(Classes, AShareThatComesBackServesWhoWaitedForIt) {
  const std::vector<TestBorrower*> low = ask(5, 1);
  serve();
  ASSERT_EQ(served(low), 3);
  low[0]->release();
  world.deliver_all();
  EXPECT_EQ(low[3]->state, State::leased);
  low[1]->discard(CloseCause::error);
  serve();
  EXPECT_EQ(low[4]->state, State::leased) << "an end gives it back as well";
}

TEST_F(Classes, AShareServesWhoWaitedForItThoughItsConnectionGoesToAHigherOne) {
  TestBorrower& other = *ask(1, 0)[0];
  const std::vector<TestBorrower*> low = ask(3, 1);
  serve();
  other.release();
  rest(seconds(10));
  TestBorrower& next = *ask(1, 1)[0];
  BorrowRequest recent = of(0);
  recent.max_idle = seconds(1);
  TestBorrower& high = waiting(recent);
  ASSERT_EQ(next.state, State::waiting) << "for a share, beside an idle connection";
  low[0]->release();
  world.deliver_all();
  EXPECT_EQ(high.state, State::leased);
  EXPECT_EQ(next.state, State::leased) << "the idle connection, which the higher one refuses";
}

TEST_F(Classes, AGrantThatFindsItsBorrowerGoneGivesItsShareBack) {
  const std::vector<TestBorrower*> low = ask(4, 1);
  while (!world.dials.empty()) world.dialed();
  low[0]->cancel();
  world.deliver_all();
  EXPECT_EQ(served(low), 3);
  EXPECT_EQ(low[3]->state, State::leased);
}

TEST_F(Classes, AHigherOneIsNotHeldUpByAQueueOfTheLower) {
  limits.size = 8;
  const std::vector<TestBorrower*> low = ask(40, 1);
  serve();
  EXPECT_EQ(served(low), 6);
  for (int round = 0; round < 20; ++round) {
    TestBorrower& high = borrower_on();
    if (high.borrow(destination(), of(0)) == State::waiting) serve();
    EXPECT_EQ(high.state, State::leased);
    high.release();
    world.deliver_all();
  }
  EXPECT_EQ(served(low), 6) << "what the higher one gives back rests for the next";
}

TEST_F(Classes, NewLimitsChangeTheShares) {
  const std::vector<TestBorrower*> low = ask(4, 1);
  serve();
  ASSERT_EQ(served(low), 3);
  limits.classes = 0;
  world.on(0);
  destination().set_limits(limits, world.now);
  serve();
  EXPECT_EQ(served(low), 4);
}

// A borrower that asks repeatedly is always served eventually, whatever its class and client, and the highest class is
// never left less than its share.
TEST_F(Classes, StarveNobodyWhateverComes) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::uint64_t n) { return random() % n; };
    test::FakeEnvironment here(2);
    Limits own;
    own.size = static_cast<std::uint32_t>(1 + pick(6));
    own.classes = static_cast<std::uint8_t>(2 + pick(3));
    Destination pool(test::origin_named("origin"), own, here, 2);
    struct One {
      std::unique_ptr<TestBorrower> borrower;
      BorrowRequest want;
      int served = 0;
    };
    std::vector<One> all;
    const std::uint64_t count = own.size + 1 + pick(20);
    for (std::uint64_t n = 0; n < count; ++n) {
      One one{std::make_unique<TestBorrower>(here, static_cast<LoopId>(pick(2))), {}, 0};
      one.want.priority_class = static_cast<std::uint8_t>(pick(own.classes));
      one.want.client = 1 + pick(4);
      all.push_back(std::move(one));
    }
    // The highest class is served up to 64 times as often as the lowest, and a client shares with those of its class.
    for (int round = 0; round < 20'000; ++round) {
      One& one = all[pick(count)];
      if (one.borrower->state == State::idle) one.borrower->borrow(pool, one.want);
      if (one.borrower->state == State::leased && pick(2) == 0) {
        ++one.served;
        one.borrower->release();
      }
      while (!here.dials.empty()) here.dialed();
      here.deliver_all();
    }
    for (const One& one : all) {
      EXPECT_GT(one.served, 0) << "seed " << seed << " class " << int{one.want.priority_class} << " of "
                               << int{own.classes} << " size " << own.size << " of " << count;
    }
    for (One& one : all) {
      if (one.borrower->state == State::waiting) one.borrower->cancel();
      if (one.borrower->state == State::leased) one.borrower->release();
      here.deliver_all();
    }
    EXPECT_EQ(here.wrong, "");
    here.on(0);
    pool.stop(here.now);
    here.deliver_all();
  }
}

}  // namespace
}  // namespace carpool::pool
