// Regression tests of the pool's users: more bugs of other pools (see pool_regression_test.cc), caused by borrowers
// that wait too long, fail, arrive at once, or reach state that is not theirs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "pool/directory/directory.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::test {
namespace {

using pool::CloseCause;
using State = TestBorrower::State;
using std::chrono::milliseconds;
using std::chrono::seconds;

class PoolUserRegression : public PoolScene {
 protected:
  PoolUserRegression() : PoolScene(2) {}
};

// J#6254: the total timeout does not run while a request is queued: the request leaves the queue long after its client
// disconnected, and takes a connection.
TEST_F(PoolUserRegression, ATimedOutWaiterDoesNotBlockTheQueue) {
  TestBorrower& holder = leased(0);
  TestBorrower& other = leased(0);
  TestBorrower& late = waiting({}, 1);
  TestBorrower& patient = waiting({}, 1);
  late.cancel();  // its deadline expired
  EXPECT_EQ(snapshot().waiting, 1U);
  holder.release();
  world.deliver_all();
  EXPECT_EQ(late.leases, 0);
  EXPECT_EQ(patient.state, State::leased) << "the one behind it";
  other.release();
  EXPECT_EQ(snapshot().waiting, 0U);
}

// The same when the deadline expires while the connection is in flight.
TEST_F(PoolUserRegression, AConnectionGrantedToATimedOutWaiterIsReturned) {
  limits.size = 1;
  TestBorrower& holder = leased(0);
  TestBorrower& late = waiting({}, 1);
  holder.release();
  late.cancel();
  world.deliver_all();
  EXPECT_EQ(late.leases, 0);
  EXPECT_EQ(borrower_on(0).borrow(destination()), State::leased);
}

// J#13004: a bounded queue rejects before it is full.
TEST_F(PoolUserRegression, ABoundedQueueRejectsOnlyWhenItIsFull) {
  limits.max_waiting = 5;
  leased();
  leased();
  for (int n = 0; n < 5; ++n) waiting({}, static_cast<LoopId>(n % 2));
  TestBorrower& refused = borrower_on();
  EXPECT_EQ(refused.borrow(destination()), State::refused);
  EXPECT_EQ(refused.fault->kind, FaultKind::queue_full);
}

// L#2042: the search for leaks is skipped when the borrow fails, and a leaked slot is never recovered.
TEST_F(PoolUserRegression, ARejectedBorrowerLeaksNothing) {
  limits.size = 1;
  limits.max_waiting = 0;
  TestBorrower& careless = leased();
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused);
  careless.lose();
  EXPECT_EQ(snapshot().leaks, 1U) << "counted when it happens, not at the next borrow";
  EXPECT_EQ(snapshot().alive(), 0U);
  leased();
}

// L#2101 (L-B11): an object with a connection's state is public: any holder of a token can set it.
template <class T>
concept ShowsItsEntry = requires(T lease) {
  lease.entry_;
};
template <class T>
concept ShowsItsInside = requires(T destination) {
  destination.impl_;
};
TEST_F(PoolUserRegression, OnlyTheHolderEndsALease) {
  static_assert(!ShowsItsEntry<pool::Lease> && !ShowsItsInside<Destination>);
  static_assert(!std::is_copy_constructible_v<pool::Lease> && !std::is_copy_constructible_v<pool::Reservation>);
  static_assert(
      !std::is_constructible_v<pool::Reservation, std::uint32_t, std::uint32_t, pool::OpenCause, pool::ProtocolMask>);
  TestBorrower& one = leased();
  one.release();
  EXPECT_FALSE(one.lease) << "the right ends with its use";
}

// J#14533: the sweeper removes a destination while a caller resolves it, which then uses freed memory.
TEST(PoolThreadsRegression, AResolvedDestinationOutlivesTheSweep) {
  FakeEnvironment world(2);
  pool::Directory directory({}, world, 2);
  const pool::Origin origin = origin_named("found");
  std::atomic<bool> done{false};
  std::uint64_t ended = 0;
  std::thread sweeper([&] {
    Instant now = world.now;
    while (!done.load() || ended == 0) {
      now += seconds(1);
      ended += directory.unlink_idle(now, milliseconds(1), [](const Destination&) { return false; }).size();
    }
  });
  std::uint64_t anew = 0;
  Destination* last = nullptr;
  for (int n = 0; n < 20000; ++n) {
    Destination* found = *directory.at(origin, {}, world.now);
    EXPECT_EQ(found->label(), "http://found") << "it exists until no reference to it is left";
    static_cast<void>(found->snapshot(world.now));
    anew += found != last ? 1 : 0;
    last = found;
  }
  done = true;
  sweeper.join();
  EXPECT_GT(ended, 0U);
  EXPECT_GT(anew, 0U);
  TestBorrower late(world, 0);
  EXPECT_EQ(late.borrow(*last), last->reclaimed() ? State::refused : State::waiting);
  if (late.state == State::waiting) world.dial_failed();
  world.deliver_all();
}

// L#2053: a shared object is created by each caller that needs it first at the same time; all but one leak.
TEST(PoolThreadsRegression, ConcurrentCallersGetOneSharedDestination) {
  for (int round = 0; round < 50; ++round) {
    FakeEnvironment world(2);
    pool::Directory directory({.max_origins = 1}, world, 2);
    std::array<Destination*, 4> found{};
    std::vector<std::thread> threads;
    for (Destination*& mine : found) {
      threads.emplace_back([&] { mine = *directory.at(origin_named("shared"), {}); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(directory.size(), 1U) << "a second one would be over the limit of origins, and an error";
    for (const Destination* mine : found) EXPECT_EQ(mine, found.front());
  }
}

}  // namespace
}  // namespace carpool::test
