// No memory: the n-th allocation fails, for every n until none is reached. The core and the lender answer with
// bad_alloc and are as they were before; a borrow and its release need none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "pool/lender.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CARPOOL_OWN_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CARPOOL_OWN_NEW 0
#endif
#endif
#ifndef CARPOOL_OWN_NEW
#define CARPOOL_OWN_NEW 1
#endif

namespace {
thread_local std::uint64_t asked = 0;     // by this thread, ever
thread_local std::uint64_t fails_at = 0;  // the one that fails; 0: none

[[maybe_unused]] void* allocate(std::size_t size, std::size_t alignment) {
  if (++asked == fails_at) throw std::bad_alloc();
  const std::size_t least = size == 0 ? 1 : size;
  void* memory = alignment == 0 ? std::malloc(least)
                                : std::aligned_alloc(alignment, (least + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

#if CARPOOL_OWN_NEW
void* operator new(std::size_t size) {
  return allocate(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
#endif

namespace carpool::pool {
namespace {

using Thing = std::unique_ptr<int>;
using Things = Lender<Thing>;

class NoMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  }
  void TearDown() override { fails_at = 0; }
  // True: the n-th allocation from here on was reached, and failed.
  template <class Work>
  static bool fails(std::uint64_t n, Work&& work) {
    fails_at = asked + n;
    bool failed = false;
    try {
      work();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    fails_at = 0;
    return failed;
  }
};

TEST_F(NoMemory, LeavesALenderAsItWasWhicheverAllocationFails) {
  std::uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, 10000U);
    std::vector<Things::Loan> loans;
    loans.reserve(200);
    std::optional<Things> things;
    failed = fails(n, [&] {
      things.emplace(Things::Settings{.cap = 150, .loops = 2});
      for (int object = 0; object < 140; ++object) {  // three blocks of places
        loans.push_back(things->take_or_make({}, [] { return std::optional(std::make_unique<int>(1)); }));
      }
    });
    if (!things) continue;
    EXPECT_EQ(things->in_use(), loans.size()) << "a place is counted for nothing, at " << n;
    while (loans.size() < 150) {
      loans.push_back(things->take_or_make({}, [] { return std::optional(std::make_unique<int>(1)); }));
      ASSERT_TRUE(loans.back()) << "a place was lost, at " << n;
    }
    EXPECT_FALSE(things->take_or_make({}, [] { return std::optional(std::make_unique<int>(1)); }));
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
  while (fails(n, [&] { EXPECT_TRUE(things.adopt(mine)); })) {
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(things.in_use(), 0U);
    ++n;
  }
  EXPECT_GT(n, 1U);
  EXPECT_EQ(**things.take(), 5);
}

TEST_F(NoMemory, IsNotNeededToBorrowAndToGiveBack) {
  Things things({.cap = 2});
  {
    const auto made = things.take_or_make({}, [] { return std::optional(std::make_unique<int>(1)); });
  }
  const std::uint64_t before = asked;
  for (const Strategy strategy : {Strategy::first, Strategy::random, Strategy::thread_id, Strategy::round_robin}) {
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(things.take({.strategy = strategy}));
  }
  EXPECT_EQ(asked, before);
}

}  // namespace
}  // namespace carpool::pool
