// Where a search for a free entry begins and how it goes on.
//   first        the lowest place of the own loop, then other loops': few connections stay hot, the others rest until
//   they
//                are closed
//   thread_id    as first, but each loop begins at a place of its own (the affinity key)
//   random, round_robin   anywhere, whosever it is: use is spread over all, and a takeover is paid for it
// In front of the first two stands the hint: what the own loop gave back last.
#pragma once

#include <bit>
#include <cstdint>

namespace carpool::pool {

enum class Strategy : std::uint8_t { first, random, thread_id, round_robin };

struct FirstPlace {
  // The next place to try among `bits` (not 0).
  static unsigned pick(std::uint64_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }
  // The n-th foreign loop to visit, 1 <= n < loops: the next one after the own, so that takers spread.
  static unsigned foreign_loop(unsigned own, unsigned n, unsigned loops) { return (own + n) % loops; }
};

// The bits of `all` at `from` and above, or those below it.
constexpr std::uint64_t from_place(std::uint64_t all, unsigned from) {
  return all & (~std::uint64_t{0} << from);
}
constexpr std::uint64_t before_place(std::uint64_t all, unsigned from) {
  return all & ~(~std::uint64_t{0} << from);
}

// A number that looks like none before it (splitmix64).
constexpr std::uint64_t scatter(std::uint64_t mixed) {
  mixed += 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

}  // namespace carpool::pool
