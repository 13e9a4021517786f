// Regression tests of the pool: bugs that other pools had or have. J# is an issue of Jetty, L# one of light-4j, L-B its
// current bugs; docs/regressions.md lists them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <vector>

#include "pool/core/pool.h"
#include "pool/directory/directory.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::test {
namespace {

using pool::CloseCause;
using State = TestBorrower::State;
using std::chrono::milliseconds;
using std::chrono::seconds;

class PoolRegression : public PoolScene {
 protected:
  PoolRegression() : PoolScene(3) {}
};

// ---- number of dials ----

// J#5855: N requests, N-1 connections, one request stuck: the borrower that caused the last dial lost its connection to
// another.
TEST_F(PoolRegression, EveryQueuedRequestGetsAConnectionIfAnotherBorrowerTakesOne) {
  std::vector<TestBorrower*> all;
  for (int n = 0; n < 3; ++n) all.push_back(&waiting());
  EXPECT_EQ(world.dials.size(), 3U);
  world.dialed(2);
  world.deliver_all();
  TestBorrower& thief = borrower_on();
  thief.borrow(destination());
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](TestBorrower* one) { return one->state == State::leased; }), 3);
}

// J#4904 J#5068 J#2293 J#1990: more connections than requests, because each pass over the queue dialed again.
TEST_F(PoolRegression, RepeatedPassesOverTheQueueDialNoMoreConnectionsThanRequests) {
  limits.size = 64;
  waiting();
  waiting();
  for (int n = 0; n < 20; ++n) {
    world.on(0);
    destination().wake(world.now);
    destination().sweep(world.now);
  }
  EXPECT_EQ(world.dials.size(), 2U);
}

// J#862: a full pool fails at once although a connection may be released in a moment.
TEST_F(PoolRegression, AFullPoolQueuesTheBorrower) {
  limits.size = 1;
  TestBorrower& holder = leased();
  TestBorrower& second = waiting();
  holder.release();
  world.deliver_all();
  EXPECT_EQ(second.state, State::leased);
}

// L-B12: a restore wakes no waiter.
TEST_F(PoolRegression, AReleaseServesAWaiterOfAnotherLoop) {
  limits.size = 1;
  TestBorrower& holder = leased(0);
  TestBorrower& other_loop = waiting({}, 1);
  holder.release();
  EXPECT_FALSE(world.mail[1].empty());
  world.deliver_all();
  EXPECT_EQ(other_loop.state, State::leased);
}

// ---- failures ----

// Jetty today (C5): one failed connect fails the whole queue, although other connections live.
TEST_F(PoolRegression, AFailedConnectFailsNoWaiterThatAnotherConnectionCanServe) {
  TestBorrower& holder = leased();
  TestBorrower& first = waiting();
  TestBorrower& second = waiting();
  while (!world.dials.empty()) world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(first.state, State::waiting);
  EXPECT_EQ(second.state, State::waiting);
  holder.release();
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
}

// J#2860: dials that never complete leave reservations behind until the pool is full.
TEST_F(PoolRegression, FailedDialsGiveTheirPlacesBack) {
  for (int n = 0; n < 50; ++n) {
    TestBorrower& one = waiting();
    while (!world.dials.empty()) world.dial_failed();
    world.deliver_all();
    EXPECT_EQ(one.state, State::refused);
    EXPECT_EQ(snapshot().alive(), 0U) << n;
    rest(seconds(60));
  }
}

// The n-th dial fails, for every n until none does: each borrower gets one result and nothing stays behind.
TEST_F(PoolRegression, AFailureOfAnyDialLeavesNoBorrowerAndNoPlaceBehind) {
  limits.size = 4;
  for (std::size_t nth = 0; nth <= 6; ++nth) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < 6; ++n) all.push_back(&waiting({}, static_cast<LoopId>(n % 2)));
    for (std::size_t dial = 0; !world.dials.empty() || world.deliver_all();) {
      if (!world.dials.empty()) dial++ == nth ? world.dial_failed() : world.dialed();
      world.deliver_all();
      for (TestBorrower* one : all) {
        if (one->state == State::leased) one->discard(CloseCause::error);
      }
    }
    for (TestBorrower* one : all) EXPECT_EQ(one->leases + one->refusals, 1) << nth;
    EXPECT_EQ(snapshot().alive(), 0U) << nth;
    rest(seconds(60));
  }
}

// The n-th takeover fails, likewise: the borrower gets another connection.
TEST_F(PoolRegression, AFailureOfAnyTakeoverLosesNoBorrower) {
  for (int nth = 1; nth <= 4; ++nth) {
    TestBorrower& holder = leased(0);
    std::vector<TestBorrower*> all;
    for (int n = 0; n < 4; ++n) all.push_back(&borrower_on(1));
    holder.release();
    int taken = 0;
    for (TestBorrower* one : all) {
      world.attach_fails = ++taken == nth;
      one->borrow(destination());
      world.attach_fails = false;
      while (!world.dials.empty()) world.dialed();
      world.deliver_all();
      ASSERT_EQ(one->state, State::leased) << nth;
      one->release();
      world.on(0);
      TestBorrower& back = leased(0);  // so that the next borrower has to take it over again
      back.release();
    }
  }
}

// ---- the connection and the entry ----

// J#365: a request that is aborted while queued leaks the connection that was meant for it.
TEST_F(PoolRegression, AnAbortWhileQueuedReturnsTheConnection) {
  limits.size = 1;
  TestBorrower& holder = leased();
  TestBorrower& gone = waiting();
  holder.release();  // in flight to the borrower that cancels
  gone.cancel();
  world.deliver_all();
  TestBorrower& next = borrower_on();
  EXPECT_EQ(next.borrow(destination()), State::leased);
}

// J#7157 J#10177 J#11607 J#13247: "c=0/4/4,a=0,i=0": closed entries stay in the pool until it is full of them.
TEST_F(PoolRegression, ClosedConnectionsFreeTheirPlaces) {
  for (int n = 0; n < 20; ++n) {
    FakeConnection& wire = idle_connection(static_cast<LoopId>(n % 2));
    world.close_by_peer(wire);
    while (world.event_one(0) || world.event_one(1)) {
    }
    EXPECT_EQ(snapshot().alive(), 0U);
    TestBorrower& user = leased();
    user.wire().peer_closed = true;
    user.release();
    EXPECT_EQ(snapshot().alive(), 0U);
  }
}

// L-B8: a connection that closes between the choice and the borrow throws at the caller.
TEST_F(PoolRegression, AConnectionThatClosesBetweenChoiceAndBorrowIsReplaced) {
  idle_connection(0);
  TestBorrower& taker = borrower_on(1);
  world.attach_fails = true;  // the kernel rejects a closed descriptor
  EXPECT_EQ(taker.borrow(destination()), State::waiting);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(taker.state, State::leased);
}

// L-B4: a connection that completes after its borrower has cancelled has no owner until a sweep finds it.
TEST_F(PoolRegression, ALateConnectionServesTheNextBorrower) {
  TestBorrower& gone = waiting();
  gone.cancel();
  world.dialed();
  EXPECT_EQ(snapshot().alive(), 1U);
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

// L-B5: expired connections stay open and count as borrowable while there is no traffic.
TEST_F(PoolRegression, ASweepClosesExpiredConnections) {
  limits.expire_time = seconds(1);
  idle_connection();
  rest(seconds(2));
  world.on(1);
  destination().sweep(world.now);
  EXPECT_TRUE(world.live.empty());
}

// L-B9: expiry by the wall clock, which jumps.
TEST_F(PoolRegression, ExpiryUsesAMonotonicClock) {
  EXPECT_TRUE(Clock::is_steady);
}

// L#1656 L#2028: a lease that is never released keeps its slot forever. L-B1 besides: nothing counts it.
TEST_F(PoolRegression, ALostLeaseIsCountedAndFreesItsPlace) {
  limits.size = 1;
  TestBorrower& careless = leased();
  careless.lose();
  EXPECT_EQ(snapshot().leaks, 1U);
  EXPECT_EQ(snapshot().alive(), 0U);
  leased();
}

// Jetty today: a lost entry is removed by its index, which may be another, living entry by then.
TEST_F(PoolRegression, ALostLeaseClosesOnlyItsOwnConnection) {
  TestBorrower& first = leased();
  TestBorrower& careless = leased();
  TestBorrower& last = leased();
  const std::uint64_t kept[] = {first.wire().id, last.wire().id};
  careless.lose();
  EXPECT_EQ(first.wire().id, kept[0]);
  EXPECT_EQ(last.wire().id, kept[1]);
  EXPECT_EQ(world.live.size(), 2U);
}

// L-B1: counters that are documented and never incremented.
TEST_F(PoolRegression, EveryCounterCounts) {
  TestBorrower& one = leased();
  one.release();
  TestBorrower& other = leased();
  other.discard(CloseCause::error);
  waiting();
  world.dial_failed();
  world.deliver_all();
  const Destination::Snapshot now = snapshot();
  EXPECT_EQ(now.borrows, 2U);
  EXPECT_EQ(now.restores, 2U);
  EXPECT_EQ(now.created, 1U);
  EXPECT_EQ(now.opened_total(), 2U);
  EXPECT_EQ(now.closed_total(), 2U);
  EXPECT_EQ(now.failed_total(), 1U);
}

// L#1704: a connection is released to a pool that is not its own.
TEST_F(PoolRegression, AConnectionReturnsToItsOwnPool) {
  Destination other(origin_named("other"), limits, world, kLoops);
  TestBorrower& here = leased();
  TestBorrower& there = borrower_on();
  there.borrow(other);
  world.dialed();
  world.deliver_all();
  here.release();
  there.release();
  EXPECT_EQ(other.snapshot(world.now).alive(), 1U);
  EXPECT_EQ(snapshot().alive(), 1U);
  EXPECT_EQ(snapshot().restores, 1U);
  other.stop(world.now);
}

// J#7201 J#9280 J#9240: stop forgets connections in use, or a query of a stopped pool throws.
TEST_F(PoolRegression, StopClosesConnectionsInUseWhenTheyAreReleased) {
  TestBorrower& user = leased();
  TestBorrower& waiter = waiting();
  destination().stop(world.now);
  world.deliver_all();
  EXPECT_EQ(waiter.state, State::refused);
  EXPECT_EQ(snapshot().alive(), 2U);  // the one in use and the one being dialed
  user.release();
  world.dialed();
  EXPECT_EQ(world.closed.size(), 2U);
  EXPECT_EQ(snapshot().alive(), 0U);
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused);
}

// Jetty today: a usage limit is checked at the release, not at the borrow.
TEST_F(PoolRegression, AUsageLimitHoldsAtTheBorrowToo) {
  limits.max_usage = 2;
  for (int n = 0; n < 2; ++n) leased().release();
  ASSERT_EQ(world.closed.size(), 1U);
  EXPECT_EQ(world.closed.front(), CloseCause::max_usage);
  TestBorrower& holder = leased();
  TestBorrower& waiter = waiting();
  world.dialed();  // for the second
  world.deliver_all();
  EXPECT_EQ(waiter.wire().id, 3U);
  holder.release();
}

// ---- no callback under a lock ----

// L-B2: a restore waits behind another thread's connect; J#8354: a callback queries the pool while the pool holds its
// lock. Every callback of this environment queries the pool; a held lock would hang this test.
class Asking final : public FakeEnvironment {
 public:
  Asking() : FakeEnvironment(2) {}
  void dial(Destination& destination, pool::Reservation reservation) override {
    ask(destination);
    FakeEnvironment::dial(destination, std::move(reservation));
  }
  void deliver(LoopId to, pool::Delivery& delivery) override {
    ask(*of);
    FakeEnvironment::deliver(to, delivery);
  }
  void detach(pool::PooledConnection& pooled, LoopId from) override {
    ask(*of);
    FakeEnvironment::detach(pooled, from);
  }
  bool attach(pool::PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override {
    ask(*of);
    return FakeEnvironment::attach(pooled, index, generation);
  }
  void dispose(pool::PooledConnection* pooled, CloseCause cause) override {
    ask(*of);
    FakeEnvironment::dispose(pooled, cause);
  }
  Destination* of = nullptr;
  int asked = 0;

 private:
  void ask(Destination& destination) {
    of = &destination;
    static_cast<void>(destination.snapshot(now));
    destination.note_failure(Fault(FaultKind::connect_refused, Side::upstream, ""));  // takes the lock
    ++asked;
  }
};

TEST(EnvironmentRegression, ThePoolCallsItsEnvironmentWithoutItsLock) {
  Asking world;
  pool::Limits limits;
  limits.size = 1;
  Destination destination(origin_named("origin"), limits, world, 2);
  world.of = &destination;
  TestBorrower first(world, 0), second(world, 1), third(world, 0);
  first.borrow(destination);
  world.dialed();
  world.deliver_all();
  second.borrow(destination);
  third.borrow(destination);
  first.release();
  world.deliver_all();
  second.discard(CloseCause::error);
  world.dial_failed();
  world.deliver_all();
  EXPECT_GE(world.asked, 5);
  destination.stop(world.now);
}

// L-B10: the first caller's TLS identity applies to all callers of the same address.
TEST(DirectoryRegression, OriginsWithDifferentTlsIdentitiesHaveDifferentPools) {
  FakeEnvironment world(1);
  pool::Directory directory({}, world, 1);
  pool::Origin one = origin_named("the-same"), other = one;
  other.tls = one.tls + 1;
  EXPECT_NE(*directory.at(one, {}), *directory.at(other, {}));
}

// L-B6, J#8493, L#2652: two callers create the pool of one origin at once, and one of them borrows from an orphan.
TEST(DirectoryRegression, ConcurrentCallersGetTheSamePool) {
  for (int round = 0; round < 50; ++round) {
    FakeEnvironment world(2);
    pool::Directory directory({}, world, 2);
    std::array<Destination*, 4> found{};
    std::vector<std::thread> threads;
    for (Destination*& mine : found) {
      threads.emplace_back([&] { mine = *directory.at(origin_named("the-same"), {}); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set<Destination*>(found.begin(), found.end()).size(), 1U);
  }
}

}  // namespace
}  // namespace carpool::test
