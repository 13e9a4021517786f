// Unit tests of Strategy::random: it spreads over all entries, and each pool has a seed of its own.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "pool/core/pool.h"

namespace carpool::pool {
namespace {

constexpr auto kAnyFree = [](const auto&, EntryWord) { return Match::take; };
using Ints = Pool<int>;

void add(Ints& pool) {
  Entry<int>* entry = pool.reserve();
  ASSERT_NE(entry, nullptr);
  ASSERT_TRUE(pool.enable(*entry, 0, false));
}

std::vector<std::uint32_t> draws(std::uint64_t seed, int count) {
  Ints pool(16, 1, 1, nullptr, seed);
  add(pool);
  const SearchHint random{0, false, Strategy::random};
  EXPECT_TRUE(pool.release(*pool.acquire(random, kAnyFree).entry)) << "drawn while there was one";
  for (int n = 1; n < 16; ++n) add(pool);
  std::vector<std::uint32_t> places;
  for (int n = 0; n < count; ++n) {
    Entry<int>& drawn = *pool.acquire(random, kAnyFree).entry;
    places.push_back(drawn.place());
    EXPECT_TRUE(pool.release(drawn));
  }
  return places;
}

TEST(RandomStrategy, DrawsFromAllEntriesFromTheFirstDrawAfterTheyCame) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<std::uint32_t> places = draws(seed, 12);
    EXPECT_GE(std::set(places.begin(), places.end()).size(), 5U) << seed;
  }
}

TEST(RandomStrategy, DrawsAsItsSeedSays) {
  EXPECT_EQ(draws(7, 8), draws(7, 8));
  std::set<std::vector<std::uint32_t>> histories;
  for (std::uint64_t seed = 0; seed < 50; ++seed) histories.insert(draws(seed, 8));
  EXPECT_GE(histories.size(), 45U);
}

}  // namespace
}  // namespace carpool::pool
