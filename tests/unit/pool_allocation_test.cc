// Unit tests of allocation failures: the n-th allocation fails, for every n until none is reached. The core and
// ObjectPool throw bad_alloc and are unchanged; a borrow and its release allocate nothing.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "pool/core/object_pool.h"
#include "tests/unit/failing_new.h"

namespace carpool::pool {
namespace {

using Thing = std::unique_ptr<int>;
using Things = ObjectPool<Thing>;

class NoMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  }
  void TearDown() override { memory().fails_at = 0; }
  // Returns true if the n-th allocation from here on was reached and failed.
  template <class Work>
  static bool fails(std::uint64_t n, Work&& work) {
    memory().fails_at = memory().asked + n;
    bool failed = false;
    try {
      work();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    memory().fails_at = 0;
    return failed;
  }
};

TEST_F(NoMemory, LeavesAnObjectPoolAsItWasWhicheverAllocationFails) {
  std::uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, 10000U);
    std::vector<Things::Handle> loans;
    loans.reserve(200);
    std::optional<Things> things;
    failed = fails(n, [&] {
      things.emplace(Things::Settings{.cap = 150, .loops = 2});
      for (int object = 0; object < 140; ++object) {  // three blocks of slots
        loans.push_back(things->acquire_or_make({}, [] { return std::optional(std::make_unique<int>(1)); }));
      }
    });
    if (!things) continue;
    EXPECT_EQ(things->in_use(), loans.size()) << "a place is counted for nothing, at " << n;
    while (loans.size() < 150) {
      loans.push_back(things->acquire_or_make({}, [] { return std::optional(std::make_unique<int>(1)); }));
      ASSERT_TRUE(loans.back()) << "a place was lost, at " << n;
    }
    EXPECT_FALSE(things->acquire_or_make({}, [] { return std::optional(std::make_unique<int>(1)); }));
    loans.clear();
    things->terminate();
    EXPECT_EQ(things->in_use(), 0U);
  }
  EXPECT_GT(n, 140U) << "what was to fail was never reached";
}

TEST_F(NoMemory, LeavesAnAdoptedObjectWithItsOwner) {
  Things things({.cap = 1});
  auto mine = std::make_unique<int>(5);
  std::uint64_t n = 1;
  while (fails(n, [&] { EXPECT_TRUE(things.insert(mine)); })) {
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(things.in_use(), 0U);
    ++n;
  }
  EXPECT_GT(n, 1U);
  EXPECT_EQ(**things.acquire(), 5);
}

TEST_F(NoMemory, IsNotNeededToBorrowAndToGiveBack) {
  Things things({.cap = 2});
  {
    const auto made = things.acquire_or_make({}, [] { return std::optional(std::make_unique<int>(1)); });
  }
  const std::uint64_t before = memory().asked;
  for (const Strategy strategy : {Strategy::first, Strategy::random, Strategy::thread_id, Strategy::round_robin}) {
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(things.acquire({.strategy = strategy}));
  }
  EXPECT_EQ(memory().asked, before);
}

}  // namespace
}  // namespace carpool::pool
