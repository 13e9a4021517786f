// SearchHint: where a search for an idle entry starts, and the arithmetic of the strategies.
#pragma once

#include <bit>
#include <cstdint>

#include "base/loop_id.h"
#include "pool/policy/strategy.h"

namespace carpool::pool {

// The searching loop and its strategy.
struct SearchHint {
  LoopId loop = 0;
  bool on_loop = true;  // start with the loop's last released entry
  Strategy strategy = Strategy::first;
  std::uint32_t key = 0;            // thread_id: the position, modulo the number of positions
  bool include_unlendable = false;  // include idle entries that accept no borrower; the matcher accepts none
};

struct SearchOrder {
  // Returns the next position to try among `bits` (not 0).
  static unsigned pick(std::uint64_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }
  // Returns the n-th foreign loop to visit, 1 <= n < loops, starting after the own one so that searches spread.
  static unsigned foreign_loop(unsigned own, unsigned n, unsigned loops) {
    const unsigned next = own + n;
    return next < loops ? next : next - loops;
  }
};

// The bits of `all` at `from` (< 64) and above, or those below it.
constexpr std::uint64_t from_place(std::uint64_t all, unsigned from) {
  return all & (~std::uint64_t{0} << from);
}
constexpr std::uint64_t before_place(std::uint64_t all, unsigned from) {
  return all & ~(~std::uint64_t{0} << from);
}

// splitmix64.
constexpr std::uint64_t splitmix64(std::uint64_t mixed) {
  mixed += 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}
// Returns the next number of a linear congruential sequence; its high bits are the most random.
constexpr std::uint32_t next_in_sequence(std::uint32_t last) {
  return last * 747796405U + 2891336453U;
}
// Maps a uniformly distributed number to 0..n-1.
constexpr std::uint32_t scaled_to(std::uint32_t number, std::uint32_t n) {
  return static_cast<std::uint32_t>((std::uint64_t{number} * n) >> 32);
}

}  // namespace carpool::pool
