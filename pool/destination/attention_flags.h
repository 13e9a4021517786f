// AttentionFlags: the flags in DestinationState::attention, above the number of waiters. While one is set, every
// borrow and every release takes the mutex.
#pragma once

#include <cstdint>

namespace carpool::pool {

struct AttentionFlags {
  static constexpr std::uint32_t kStopped = 1u << 31;
  static constexpr std::uint32_t kPaused = 1u << 30;
  static constexpr std::uint32_t kReview = 1u << 29;  // release() checks forced_close_cause()
  static constexpr std::uint32_t kCooling = 1u << 28;
  static constexpr std::uint32_t kReplaced = 1u << 27;  // Limits::replaced
  static constexpr std::uint32_t kAllFlags = kStopped | kPaused | kReview | kCooling | kReplaced;
};

}  // namespace carpool::pool
