// Unit tests of a destination without memory: the n-th allocation fails, for every n until none is reached. Nothing
// ends because of it: each borrower is served, waits or is rejected, existing connections continue, and afterwards the
// state is as before.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "pool/core/pool.h"
#include "pool/directory/directory.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using test::EndlessMemory;
using test::memory;

// The environment around the pool has memory.
class RichWorld final : public test::FakeEnvironment {
 public:
  RichWorld() : FakeEnvironment(2) {}
  void dial(Destination& destination, Reservation reservation) override {
    const EndlessMemory endless;
    FakeEnvironment::dial(destination, std::move(reservation));
  }
  void deliver(LoopId to, Delivery& delivery) override {
    const EndlessMemory endless;
    FakeEnvironment::deliver(to, delivery);
  }
  void wake_at(Destination& destination, Instant when) override {
    const EndlessMemory endless;
    FakeEnvironment::wake_at(destination, when);
  }
  bool attach(PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override {
    const EndlessMemory endless;
    return FakeEnvironment::attach(pooled, index, generation);
  }
  std::unique_ptr<FakeConnection> made_by(const Dial& dial) override {
    const EndlessMemory endless;
    return FakeEnvironment::made_by(dial);
  }
  void dispose(PooledConnection* pooled, CloseCause cause) override {
    const EndlessMemory endless;
    FakeEnvironment::dispose(pooled, cause);
  }
};

// Two destinations that share a budget, and many borrowers: more slots than a block has, sessions, rejections, cancels,
// failed dials, operator commands, a sweep, and stop.
class Play {
 public:
  static constexpr std::uint32_t kSize = 70, kAskers = 90;
  explicit Play(bool sessions) : sessions_(sessions) {
    destinations_.reserve(2);
    for (std::uint32_t n = 0; n < kAskers; ++n) {
      askers.push_back(std::make_unique<TestBorrower>(world, static_cast<LoopId>(n % 2)));
    }
  }

  // Allocations fail only within.
  void act() {
    directory.emplace(DirectoryLimits{.max_origins = 4, .max_connections = kSize + 2}, world, 2);
    for (const char* name : {"one", "two"}) {
      auto at = directory->at(origins_[destinations_.size()], limits());
      if (!at) {
        EXPECT_EQ(at.fault().kind, FaultKind::overloaded) << name;
        return;
      }
      destinations_.push_back(*at);
    }
    everybody_asks();
    end_dials(0);
    cancel_and_give_back();
    everybody_asks();
    end_dials(5);
    world.now += seconds(2);
    world.on(0);
    directory->sweep(world.now);
    destinations_.front()->reconnect(world.now);
    end_dials(3);
    cancel_and_give_back();
  }

  // Memory is available again: everything completes.
  std::string run_to_completion() {
    for (int n = 0; n < 400; ++n) {
      end_dials(0);
      cancel_and_give_back();
      world.now += milliseconds(500);
      world.on(0);
      if (directory) directory->sweep(world.now);
      if (world.mail_empty() && world.dials.empty()) break;
    }
    for (Destination* one : destinations_) {
      const Destination::Snapshot now = one->snapshot(world.now);
      if (now.opened_total() - now.closed_total() != now.alive()) return "the ledger does not balance";
      if (now.borrows != now.restores) return "a lease is missing";
      TestBorrower last(world, 0);
      last.borrow(*one);
      for (int n = 0; n < 20 && last.state == State::waiting; ++n) end_dials(0);
      if (last.state != State::leased) return "a place was lost";
      last.release();
    }
    for (const auto& one : askers) {
      if (one->state == State::waiting) return "a waiter was forgotten";
      if (one->fault && one->fault->kind == FaultKind::internal) return "a no that says nothing";
    }
    if (directory) directory->stop(world.now);
    world.deliver_all();
    if (!world.live.empty()) return "a connection survived the end";
    return world.wrong;
  }

  RichWorld world;
  std::optional<Directory> directory;
  std::vector<std::unique_ptr<TestBorrower>> askers;

 private:
  Limits limits() const {
    Limits mine;
    mine.size = kSize;
    mine.max_waiting = 10;
    mine.idle_timeout = seconds(60);
    mine.expected_streams = sessions_ ? 0 : 1;
    mine.strategy = Strategy::round_robin;
    return mine;
  }
  void everybody_asks() {
    for (std::uint32_t n = 0; n < kAskers; ++n) {
      TestBorrower& one = *askers[n];
      if (one.state == State::waiting || one.state == State::leased) continue;
      BorrowRequest want;
      want.new_connection_only = n % 11 == 3;
      want.tunnel = n % 13 == 5;
      one.borrow(*destinations_[n % 8 == 0 ? 1 : 0], want);
    }
  }
  void end_dials(std::uint32_t failing) {
    world.next_streams = sessions_ ? 3 : 0;
    for (std::uint32_t n = 1; !world.dials.empty() && n < 500; ++n) {
      failing != 0 && n % failing == 0 ? world.dial_failed() : world.dialed();
      world.deliver_all();
    }
    world.deliver_all();
  }
  void cancel_and_give_back() {
    for (std::uint32_t n = 0; n < kAskers; ++n) {
      TestBorrower& one = *askers[n];
      if (one.state == State::waiting && n % 3 == 0) one.cancel();
      if (one.state != State::leased) continue;
      n % 5 == 0 ? one.discard(CloseCause::error) : one.release();
    }
    world.deliver_all();
  }
  const bool sessions_;
  const Origin origins_[2] = {test::origin_named("one"), test::origin_named("two")};
  std::vector<Destination*> destinations_;
};

class ADestinationWithoutMemory : public testing::TestWithParam<bool> {};

TEST_P(ADestinationWithoutMemory, TellsItsBorrowersAndGoesOnWhicheverAllocationFails) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  bool reached = true;
  std::uint64_t n = 1;
  for (; reached; ++n) {
    ASSERT_LT(n, 5000U);
    Play play(GetParam());
    const std::uint64_t before = memory().asked;
    memory().fails_at = before + n;
    EXPECT_NO_THROW(play.act()) << "at " << n;
    memory().fails_at = 0;
    reached = memory().asked - before >= n;
    const std::string wrong = play.run_to_completion();
    ASSERT_EQ(wrong, "") << "at " << n;
  }
  EXPECT_GT(n, 20U) << "what was to fail was never reached";
}

INSTANTIATE_TEST_SUITE_P(, ADestinationWithoutMemory, testing::Bool(),
                         [](const auto& sessions) { return sessions.param ? "OfSessions" : "OfConnections"; });

TEST(NoMemoryForAnotherBlock, TakesNoNumbers) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  const auto index = std::make_unique<EntryIndex>();
  Pool<int> pool(2 * kBlockEntries, 1, 1, index.get());
  for (unsigned n = 0; n < kBlockEntries; ++n) ASSERT_NE(pool.reserve(), nullptr);
  unsigned failed = 0;
  for (const Entry<int>* made = nullptr; made == nullptr && failed < 100;) {
    memory().fails_at = memory().asked + failed + 1;
    try {
      made = pool.reserve();
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    memory().fails_at = 0;
  }
  EXPECT_GT(failed, kBlockEntries / kPartEntries);
  EXPECT_EQ(index->reserve().first_index, 2 * kBlockEntries);
  EXPECT_EQ(pool.in_use(), kBlockEntries + 1);
}

TEST(NoMemoryForAConnection, IsAFaultThatSaysSo) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  RichWorld world;
  Destination destination(test::origin_named("one"), {}, world, 2);
  TestBorrower first(world, 0);
  for (std::uint64_t n = 1; n < 100 && first.state == State::idle; ++n) {
    memory().fails_at = memory().asked + n;
    first.borrow(destination);
    memory().fails_at = 0;
    if (first.state == State::waiting) break;
    ASSERT_EQ(first.state, State::refused) << n;
    EXPECT_EQ(first.fault->kind, FaultKind::overloaded) << n;
    first.state = State::idle;
  }
  ASSERT_EQ(first.state, State::waiting);
  EXPECT_GT(destination.snapshot(world.now).failures[static_cast<std::size_t>(FailureReason::budget)], 0U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
  first.release();
  destination.stop(world.now);
}

}  // namespace
}  // namespace carpool::pool
