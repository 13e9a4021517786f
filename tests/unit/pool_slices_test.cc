// Unit tests of commands and sweeps over a large pool: one pass, and never more than a thousand connections per hold of
// the mutex.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

// Records, at each close, how many connections were closed in the counters but not yet disposed of.
class BookedWorld final : public test::FakeEnvironment {
 public:
  BookedWorld() : FakeEnvironment(2) {}
  void dispose(PooledConnection* pooled, CloseCause cause) override {
    if (watched != nullptr) {
      const std::uint64_t ended = watched->snapshot(now).closed_total() - before - disposed++;
      at_once = std::max(at_once, ended);
    }
    FakeEnvironment::dispose(pooled, cause);
  }
  void watch_books(Destination& destination) {
    watched = &destination;
    before = destination.snapshot(now).closed_total();
    disposed = 0;
  }
  Destination* watched = nullptr;
  std::uint64_t before = 0, disposed = 0, at_once = 0;
};

double cpu_seconds_of_thread() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) / 1e9;
}

// A pool with the given number of idle connections, each used a little later than the one before.
struct Large {
  explicit Large(unsigned many) : count(many) {
    limits.size = many;
    limits.max_waiting = many;
    for (unsigned n = 0; n < many; ++n) askers.emplace_back(world, static_cast<LoopId>(n % 2)).borrow(destination());
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
    for (TestBorrower& one : askers) {
      world.now += std::chrono::microseconds(1);
      one.release();
    }
    world.on(0);
  }
  ~Large() {
    world.watched = nullptr;
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
    destination().stop(world.now);
    EXPECT_EQ(world.live.size(), 0U);
    EXPECT_EQ(world.wrong, "");
  }
  Large(const Large&) = delete;
  Large& operator=(const Large&) = delete;
  Destination& destination() {
    if (!made) made = std::make_unique<Destination>(test::origin_named("origin"), limits, world, 2);
    return *made;
  }
  std::uint64_t idle() { return destination().snapshot(world.now).of(ConnectionStatus::idle); }
  double cost(const std::function<void()>& command) {
    const double begin = cpu_seconds_of_thread();
    command();
    return cpu_seconds_of_thread() - begin;
  }
  BookedWorld world;
  Limits limits;
  const unsigned count;
  std::deque<TestBorrower> askers;
  std::unique_ptr<Destination> made;
};

TEST(ALargePool, EndsAThousandConnectionsUnderOneHoldOfTheMutexAtMost) {
  Large pool(2500);
  Limits one = pool.limits;
  one.size = 1;
  pool.world.watch_books(pool.destination());
  pool.destination().set_limits(one, pool.world.now);
  EXPECT_EQ(pool.idle(), 1U);
  EXPECT_LE(pool.world.at_once, 1000U);
  EXPECT_GT(pool.world.at_once, 1U);
}

TEST(ALargePool, KeepsTheMostRecentlyUsedWhenItShrinks) {
  Large pool(1500);
  Limits smaller = pool.limits;
  smaller.size = 100;
  const Duration most = std::chrono::microseconds(99);
  pool.destination().set_limits(smaller, pool.world.now);
  EXPECT_EQ(pool.idle(), 100U);
  BorrowRequest want;
  want.max_idle = most;
  std::deque<TestBorrower> patient;
  for (int n = 0; n < 100; ++n) {
    EXPECT_EQ(patient.emplace_back(pool.world, LoopId{0}).borrow(pool.destination(), want), State::leased);
  }
  for (TestBorrower& one : patient) one.release();
}

TEST(ALargePool, StopsAndDrainsInSlices) {
  Large pool(2500);
  pool.world.watch_books(pool.destination());
  pool.destination().drain(pool.world.now);
  EXPECT_EQ(pool.world.live.size(), 0U);
  EXPECT_LE(pool.world.at_once, 1000U);
  pool.destination().resume(pool.world.now);
}

TEST(ALargePool, ClosesExpiredConnectionsInSlices) {
  Large pool(2500);
  Limits short_lived = pool.limits;
  short_lived.idle_timeout = seconds(1);
  pool.destination().set_limits(short_lived, pool.world.now);
  pool.world.now += seconds(2);
  pool.world.watch_books(pool.destination());
  pool.destination().sweep(pool.world.now);
  EXPECT_EQ(pool.world.live.size(), 0U);
  EXPECT_LE(pool.world.at_once, 1000U);
}

TEST(ALargePool, RejectsWaitersInSlices) {
  Large pool(1);
  TestBorrower& holder = pool.askers.front();
  holder.borrow(pool.destination());
  Limits longer = pool.limits;
  longer.max_waiting = 3000;
  pool.destination().set_limits(longer, pool.world.now);
  std::deque<TestBorrower> line;
  for (int n = 0; n < 2500; ++n) line.emplace_back(pool.world, LoopId{0}).borrow(pool.destination());
  pool.destination().stop(pool.world.now);
  pool.world.deliver_all();
  for (const TestBorrower& one : line) EXPECT_EQ(one.state, State::refused);
  holder.release();
}

TEST(ALargePool, ReplacesEveryConnection) {
  Large pool(2500);
  pool.world.watch_books(pool.destination());
  pool.destination().reconnect(pool.world.now);
  for (int rounds = 0; rounds < 10'000 && !pool.world.dials.empty(); ++rounds) pool.world.dialed();
  EXPECT_EQ(pool.world.disposed, 2500U);
  EXPECT_EQ(pool.world.live.size(), 2500U);
  EXPECT_LE(pool.world.at_once, 1000U);
}

TEST(ALargePool, TakesTenTimesAsLongForTenTimesAsManyConnections) {
  const auto shrink = [](Large& pool) {
    Limits one = pool.limits;
    one.size = 1;
    return pool.cost([&] { pool.destination().set_limits(one, pool.world.now); });
  };
  const auto reconnect = [](Large& pool) {
    return pool.cost([&] {
      pool.destination().reconnect(pool.world.now);
      while (!pool.world.dials.empty()) pool.world.dialed();
    });
  };
  for (const auto& command : {std::function<double(Large&)>(shrink), std::function<double(Large&)>(reconnect)}) {
    // The least of several runs: other programs share the caches. A walk for each would cost a hundred times as much.
    double few = 1e9, many = 1e9;
    for (int n = 0; n < 5; ++n) {
      Large small(400), large(4000);
      few = std::min(few, command(small));
      many = std::min(many, command(large));
    }
    EXPECT_LT(many, 30 * few) << "ten times as many took " << many / few << " times as long";
  }
}

}  // namespace
}  // namespace carpool::pool
