// Unit tests of LazyOrder: the order, and the number of comparisons by the number of items.
#include "base/lazy_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"

namespace carpool {
namespace {

std::vector<std::uint64_t> numbers(std::size_t count) {
  Random random(7);
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(random.below(1'000'000));
  return all;
}

TEST(LazyOrder, GivesTheItemsInOrder) {
  std::vector<std::uint64_t> sorted = numbers(1000), taken;
  LazyOrder order(sorted, std::less<>());
  for (; !order.empty(); order.remove_first()) taken.push_back(order.first());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(taken, sorted);
}

TEST(LazyOrder, OfNothingIsEmpty) {
  EXPECT_TRUE(LazyOrder(std::vector<int>(), std::less<>()).empty());
}

TEST(LazyOrder, ComparesEachItemAFewTimesAndThoseThatAreTakenByTheLogarithm) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
    std::size_t comparisons = 0;
    LazyOrder order(numbers(count), [&comparisons](std::uint64_t one, std::uint64_t other) {
      ++comparisons;
      return one < other;
    });
    EXPECT_LE(comparisons, 3 * count) << count;
    for (int taken = 0; taken < 10 && !order.empty(); ++taken) {
      comparisons = 0;
      order.remove_first();
      EXPECT_LE(comparisons, 2 * static_cast<std::size_t>(std::bit_width(count))) << count;
    }
  }
}

}  // namespace
}  // namespace carpool
