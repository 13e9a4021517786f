// Random: pseudo-random numbers for selection and jitter, not for secrets. Marsaglia's xorshift, 64 bits.
#pragma once

#include <cstdint>

namespace carpool {

class Random {
 public:
  static constexpr std::uint64_t kSeed = 0x9E3779B97F4A7C15ULL;
  // The seed must not be 0.
  explicit constexpr Random(std::uint64_t seed = kSeed) : last_(seed) {}

  // Returns a number in 0..n-1.
  constexpr std::uint64_t below(std::uint64_t n) {
    last_ ^= last_ << 13;
    last_ ^= last_ >> 7;
    last_ ^= last_ << 17;
    return last_ % n;
  }

 private:
  std::uint64_t last_;
};

}  // namespace carpool
