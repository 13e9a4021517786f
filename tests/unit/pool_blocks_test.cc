// Unit tests of the memory of a pool: entries are made when they are needed.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "pool/core/entry_index.h"
#include "pool/core/pool.h"
#include "tests/unit/heap_in_use.h"

namespace carpool::pool {
namespace {

TEST(EntryIndex, FindsAnEntryOnceItsPoolHasMadeIt) {
  Pool<int> pool(kPartEntries + 1, 1, 1, &EntryIndex::process());
  const std::uint32_t first = pool.reserve()->index, last = first + kPartEntries;
  EXPECT_NE(EntryIndex::process().find(last - 1), nullptr);
  EXPECT_EQ(EntryIndex::process().find(last), nullptr) << "the number of an event of a pool that is gone";
  for (unsigned n = 1; n < kPartEntries; ++n) ASSERT_NE(pool.reserve(), nullptr);
  EXPECT_EQ(EntryIndex::process().find(last), nullptr);
  Entry<int>* const made = pool.reserve();
  EXPECT_EQ(EntryIndex::process().find(last), made);
}

TEST(Pool, TakesMemoryForTheEntriesThatItUses) {
  struct Large {
    std::array<char, 4096> bytes{};
  };
  const std::int64_t before = test::heap_in_use();
  Pool<Large> pool(64, 1);
  ASSERT_NE(pool.reserve(), nullptr);
  EXPECT_LT(test::heap_in_use() - before, 8 * 4096);
  unsigned places = 0;
  pool.for_each([&](const Entry<Large>&) { ++places; });
  EXPECT_EQ(places, kPartEntries);
  for (unsigned n = 1; n < 64; ++n) ASSERT_NE(pool.reserve(), nullptr);
  EXPECT_EQ(pool.blocks(), 1U);
}

TEST(Pool, MakesItsLaterBlocksWhole) {
  Pool<int> pool(4 * kBlockEntries, 1);
  for (unsigned n = 0; n < 4 * kBlockEntries; ++n) ASSERT_NE(pool.reserve(), nullptr);
  EXPECT_EQ(pool.blocks(), 4U);
}

}  // namespace
}  // namespace carpool::pool
