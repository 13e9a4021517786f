// measure_load(), erlang_size(): the load that recent borrows put on a pool, and the connections that it keeps busy.
// With arrivals at rate l and a mean hold time h the offered load is a = l * h (Little's law). With c connections a
// request must wait with the probability given by Erlang's C formula, C(c, a), and
//   P(wait > t) = C(c, a) * exp(-(c - a) * t / h).
// The formulas hold for arrivals that do not depend on each other. The advice to operators replays the borrows instead
// (pool/directory/size_advice.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "pool/policy/borrow_history.h"

namespace carpool::pool {

struct MeasuredLoad {
  std::size_t borrows = 0;  // sample size
  Duration window{};        // from the first arrival to the last end
  Duration in_use{};        // the window without gaps of a second or longer between borrows
  double arrival_rate = 0;  // per second of in_use
  Duration mean_hold{}, p99_hold{};
  Duration mean_wait{}, p99_wait{};
  double offered_load = 0;                                    // connections busy on average, in in_use
  std::uint32_t busy_median = 0, busy_p99 = 0, busy_max = 0;  // concurrent leases, weighted by time
  std::uint32_t asked_max = 0;                                // concurrent leases and waiters
};

// The minimum sample size.
inline constexpr std::size_t kMinBorrows = 20;

// Returns nullopt if there are too few borrows.
std::optional<MeasuredLoad> measure_load(const std::vector<BorrowRecord>& borrows);

// Returns the smallest size with which 99 of 100 requests wait no longer than a tenth of the hold time (1 ms at least),
// but not less than the number of concurrent leases in busy moments (99th percentile by time).
std::uint32_t erlang_size(const MeasuredLoad& load);

// Returns Erlang's C: the probability that none of `servers` is free under an offered load. 1 if the load exceeds them.
double erlang_c(std::uint32_t servers, double offered_load);

}  // namespace carpool::pool
