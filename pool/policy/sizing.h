// recommend_size(): derives a pool size from recent borrows. With arrivals at rate l and a mean hold time h the offered
// load is a = l * h (Little's law). With c connections a request must wait with the probability given by Erlang's C
// formula, C(c, a), and
//   P(wait > t) = C(c, a) * exp(-(c - a) * t / h),      mean wait = C(c, a) * h / (c - a).
// Recommends the smallest c with P(wait > goal) <= 1 %, where the goal is a tenth of the hold time, 1 ms at least, but
// never less than the number of concurrent leases in busy moments (99th percentile by time), as arrivals come in
// bursts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "pool/policy/borrow_history.h"

namespace carpool::pool {

struct Advice {
  std::size_t borrows = 0;  // sample size
  Duration window{};        // from the first arrival to the last end
  double arrival_rate = 0;  // per second
  Duration mean_hold{}, p99_hold{};
  Duration mean_wait{}, p99_wait{};                            // measured
  double offered_load = 0;                                     // connections busy on average
  std::uint32_t busy_median = 0, busy_p99 = 0, busy_most = 0;  // concurrent leases, weighted by time
  Duration goal{};
  std::uint32_t size = 0;                          // recommended
  std::uint32_t min_idle = 0;                      // recommended: the difference between busy and usual moments
  std::optional<Duration> expected_wait;           // mean, with the recommended size
  std::optional<Duration> expected_wait_as_it_is;  // with the present size; nullopt: the load exceeds it
};

// The minimum sample size.
inline constexpr std::size_t kFewestForAdvice = 20;

// Returns nullopt if there are too few borrows.
std::optional<Advice> recommend_size(const std::vector<BorrowRecord>& stays, std::uint32_t present_size);

// Erlang's C: the probability that none of `servers` is free under an offered load. 1 if the load exceeds them.
double erlang_c(std::uint32_t servers, double offered_load);

}  // namespace carpool::pool
