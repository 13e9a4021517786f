// reserve_size(): the default number of reserved threads.
#pragma once

#include <algorithm>
#include <bit>

namespace carpool::exec {

// `configured` < 0: one per core, at most an eighth of the pool, rounded up to a power of two; 0: none, EPC is off.
// `cores`: available to this process, its cgroup's quota included.
constexpr unsigned reserve_size(int configured, unsigned cores, unsigned max_threads) {
  if (configured >= 0) return static_cast<unsigned>(configured);
  return std::max(1U, std::bit_ceil(std::min(cores, max_threads / 8)));
}

}  // namespace carpool::exec
