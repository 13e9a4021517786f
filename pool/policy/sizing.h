// Advice: from the borrows of the recent past to the size that they ask for. Queueing theory in its plainest form: with
// arrivals at rate l and a mean hold time h the offered load is a = l * h (Little's law); with c connections a request
// must wait with the probability that Erlang's C formula gives, C(c, a), and
//   P(wait > t) = C(c, a) * exp(-(c - a) * t / h),      mean wait = C(c, a) * h / (c - a).
// Recommended is the smallest c with P(wait > goal) <= 1 %, the goal being a tenth of the hold time, 1 ms at least; and
// never less than what was lent at once in busy moments (99 % of the time), for arrivals that come in bursts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "pool/policy/borrow_history.h"

namespace carpool::pool {

struct Advice {
  std::size_t borrows = 0;  // that it rests on
  Duration window{};        // from the first arrival to the last end
  double arrival_rate = 0;  // per second
  Duration mean_hold{}, p99_hold{};
  Duration mean_wait{}, p99_wait{};                            // measured
  double offered_load = 0;                                     // connections busy on average
  std::uint32_t busy_median = 0, busy_p99 = 0, busy_most = 0;  // connections lent at once, by time
  Duration goal{};
  std::uint32_t size = 0;                 // recommended
  std::uint32_t min_idle = 0;             // recommended: from the usual number of lent ones to that of busy moments
  std::optional<Duration> expected_wait;  // mean, with the recommended size
  std::optional<Duration> expected_wait_as_it_is;  // with the present size; nothing: the load exceeds it
};

// Fewer say too little.
inline constexpr std::size_t kFewestForAdvice = 20;

// Nothing: too few borrows to tell.
std::optional<Advice> recommend_size(const std::vector<BorrowRecord>& stays, std::uint32_t present_size);

// Erlang's C: the probability that one of `servers` is not free at once under an offered load. 1 when it cannot keep
// up.
double erlang_c(std::uint32_t servers, double offered_load);

}  // namespace carpool::pool
