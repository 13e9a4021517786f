// Where a search for a free entry begins and how it goes on. FIRST is here: the lowest place of the own loop, then
// other loops'. It keeps few connections hot and lets the others rest until they are closed. Other strategies (RANDOM,
// THREAD_ID, ROUND_ROBIN) are other orders of the same two: a bit of a map, a map of a block.
#pragma once

#include <bit>
#include <cstdint>

namespace carpool::pool {

struct FirstPlace {
  // The next place to try among `bits` (not 0).
  static unsigned pick(std::uint64_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }
  // The n-th foreign loop to visit, 1 <= n < loops: the next one after the own, so that takers spread.
  static unsigned foreign_loop(unsigned own, unsigned n, unsigned loops) { return (own + n) % loops; }
};

}  // namespace carpool::pool
