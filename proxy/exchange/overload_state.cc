#include "proxy/exchange/overload_state.h"

#include <algorithm>

namespace carpool::proxy {

// Clients that closed since the last measurement also lower the level, so that the next client is not refused because
// of them.
bool OverloadState::count_descriptors() {
  const Watermarks marks = marks_.read();
  const Use use = descriptor_use();
  const std::int64_t granted = AcceptBudget::grant(use, marks);
  budget_.set(granted - 1);
  const double most = std::max(use.percent(), static_cast<double>(memory_percent_.load(std::memory_order_relaxed)));
  ShedLevel before = level();
  while (!level_.compare_exchange_weak(before, next_level(before, most, marks), std::memory_order_relaxed)) {
  }
  return granted > 0;
}

}  // namespace carpool::proxy
