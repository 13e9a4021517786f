// Unit tests of c_allocator: when memory is exhausted it returns null.
#include "base/c_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/unit/failing_memory.h"

namespace carpool::c_allocator {
namespace {

constexpr std::size_t kTooMuch = SIZE_MAX / 4;
int asked = 0;

// Allocates twice, then fails.
void give_twice() {
  if (++asked > 2) throw std::bad_alloc();
}

class CAllocator : public ::testing::Test {
 protected:
  CAllocator() { std::set_new_handler(&give_twice); }
  ~CAllocator() override { std::set_new_handler(nullptr); }
  const int before_ = asked = 0;
};

TEST_F(CAllocator, AsksForMemoryUntilThereIsNone) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns malloc";
  EXPECT_EQ(allocate(kTooMuch), nullptr);
  EXPECT_EQ(asked, 3);
}

TEST_F(CAllocator, AsksForZeroedMemoryToo) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns malloc";
  EXPECT_EQ(allocate_zeroed(2, kTooMuch), nullptr);
  EXPECT_EQ(asked, 3);
}

TEST_F(CAllocator, LeavesABlockThatCannotGrow) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns malloc";
  auto* block = static_cast<char*>(allocate(8));
  *block = 'x';
  EXPECT_EQ(reallocate(block, kTooMuch), nullptr);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(*block, 'x');
  std::free(block);
}

TEST_F(CAllocator, AsksForNothingWhileThereIsMemory) {
  void* none = allocate(0);
  void* grown = reallocate(allocate_zeroed(0, 8), 100);
  EXPECT_TRUE(none != nullptr && grown != nullptr) << "null would be a lack of memory";
  EXPECT_EQ(asked, 0);
  std::free(none);
  std::free(grown);
}

TEST_F(CAllocator, TellsWhetherACallMayBeRepeated) {
  EXPECT_TRUE(ask_for_memory());
  EXPECT_TRUE(ask_for_memory());
  EXPECT_FALSE(ask_for_memory());
}

TEST(CAllocatorAlone, FailsAtOnceWithoutAHandler) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns malloc";
  EXPECT_EQ(allocate(kTooMuch), nullptr);
}

}  // namespace
}  // namespace carpool::c_allocator
