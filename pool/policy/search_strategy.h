// Where a search for a free entry begins and how it goes on.
//   first         what the own loop gave back last, its lowest place, then other loops': few things stay hot, the
//   others
//                 rest until they are closed
//   thread_id     as first, but the search begins at a place of the caller's: the affinity key
//   random, round_robin   anywhere, whosever it is: use is spread over all, and a takeover is paid for it
#pragma once

#include <bit>
#include <cstdint>

#include "pool/destination/environment.h"

namespace carpool::pool {

enum class Strategy : std::uint8_t { first, random, thread_id, round_robin };

// Who searches, and how.
struct SearchHint {
  LoopId loop = 0;
  bool on_loop = true;  // begin with what that loop gave back last
  Strategy strategy = Strategy::first;
  std::uint32_t key = 0;  // of thread_id: the place, modulo as many as there may be
  bool to_end = false;    // the judge sees what rests and takes nobody, too; it takes nothing
};

struct FirstPlace {
  // The next place to try among `bits` (not 0).
  static unsigned pick(std::uint64_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }
  // The n-th foreign loop to visit, 1 <= n < loops: the next one after the own, so that takers spread.
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

// A number that looks like none before it (splitmix64).
constexpr std::uint64_t scatter(std::uint64_t mixed) {
  mixed += 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}
// The next number of a cheap sequence (a linear congruence; its high bits are the good ones).
constexpr std::uint32_t drawn_after(std::uint32_t last) {
  return last * 747796405U + 2891336453U;
}
// One of 0..n-1, for a number that is spread over all there are.
constexpr std::uint32_t lot(std::uint32_t number, std::uint32_t n) {
  return static_cast<std::uint32_t>((std::uint64_t{number} * n) >> 32);
}

}  // namespace carpool::pool
