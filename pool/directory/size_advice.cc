#include "pool/directory/size_advice.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace carpool::pool {

namespace {
constexpr std::size_t kParts = 4;

// Tries sizes for one workload.
class Trial {
 public:
  Trial(const Workload& load, const Limits& limits, Duration wait_timeout, Duration target)
      : load_(load), limits_(limits), wait_timeout_(wait_timeout), target_(target) {
    load_.warm = true;  // the record begins while the pool is in use: its first borrows need no dials
  }

  SimulationResult with(std::uint32_t size, std::uint32_t min_idle) const {
    Limits limits = limits_;
    limits.size = size;
    limits.min_idle = std::min(min_idle, size);
    return simulate(load_, limits, wait_timeout_);
  }

  // More connections do not avoid waits for dials: a size is sufficient if it is as good as the largest. The load may
  // differ from the record: half of the hundredth that may wait longer is a margin.
  bool sufficient(const SimulationResult& outcome, Duration best) const {
    return outcome.refused + outcome.timed_out == 0 && outcome.p995_wait <= std::max(target_, best);
  }
  bool met(const SimulationResult& outcome) const {
    return outcome.refused + outcome.timed_out == 0 && outcome.p99_wait <= target_;
  }

  // Returns the smallest sufficient size, at most `largest`. More connections never make waits longer by more than what
  // a replay of one history may vary, so a binary search suffices.
  std::uint32_t smallest(std::uint32_t largest, std::uint32_t min_idle) const {
    const Duration best = with(largest, min_idle).p995_wait;
    std::uint32_t low = 1, high = largest;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (sufficient(with(middle, min_idle), best))
        high = middle;
      else
        low = middle + 1;
    }
    return high;
  }

  std::uint32_t smallest_min_idle(std::uint32_t size) const {
    std::uint32_t low = 0, high = size;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (met(with(size, middle)))
        high = middle;
      else
        low = middle + 1;
    }
    return high;
  }

 private:
  Workload load_;
  const Limits& limits_;
  const Duration wait_timeout_, target_;
};

std::uint32_t connections_for(std::uint32_t borrows, std::uint32_t streams) {
  return std::max(1U, (borrows + streams - 1) / std::max(1U, streams));
}

// Returns the sizes that consecutive parts of the record require.
std::pair<std::uint32_t, std::uint32_t> range_of(const Workload& load, const Limits& limits, Duration wait_timeout,
                                                 const SizeAdvice& advice, std::uint32_t largest) {
  std::pair<std::uint32_t, std::uint32_t> range{advice.size, advice.size};
  if (load.borrows.size() < kParts * kMinBorrows) return range;
  std::vector<BorrowRecord> borrows = load.borrows;
  std::sort(borrows.begin(), borrows.end(), [](const auto& a, const auto& b) { return a.arrived < b.arrived; });
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto from = static_cast<std::ptrdiff_t>(borrows.size() * part / kParts);
    const auto to = static_cast<std::ptrdiff_t>(borrows.size() * (part + 1) / kParts);
    Workload some{
        {borrows.begin() + from, borrows.begin() + to}, load.dial_time, load.origin_closes_after, load.streams};
    const std::uint32_t size = Trial(some, limits, wait_timeout, advice.target).smallest(largest, limits.min_idle);
    range.first = std::min(range.first, size);
    range.second = std::max(range.second, size);
  }
  return range;
}

// The loops' times differ by the length of their turns, so a lease that one loop ended and the next one of another loop
// may overlap in the record.
void limit_levels(MeasuredLoad& measured, const Workload& load) {
  if (load.peak == 0) return;
  const std::uint64_t places = std::uint64_t{load.peak} * std::max(load.streams, 1U);
  for (std::uint32_t* const level : {&measured.busy_median, &measured.busy_p99, &measured.busy_max}) {
    *level = static_cast<std::uint32_t>(std::min<std::uint64_t>(*level, places));
  }
}

Duration usual_target(const MeasuredLoad& load) {
  return std::max<Duration>(load.mean_hold / 10, std::chrono::milliseconds(1));
}
}  // namespace

std::optional<SizeAdvice> advise_size(const Workload& load, const Limits& limits, Duration wait_timeout,
                                      std::optional<Duration> target) {
  const std::optional<MeasuredLoad> measured = measure_load(load.borrows);
  if (!measured) return std::nullopt;
  SizeAdvice advice;
  advice.load = *measured;
  limit_levels(advice.load, load);
  advice.target = target.value_or(usual_target(*measured));
  const Trial trial(load, limits, wait_timeout, advice.target);
  // With as many connections as there ever were borrows at once, none waits in the queue.
  const std::uint32_t largest = connections_for(advice.load.asked_max, load.streams);
  advice.size = trial.smallest(largest, limits.min_idle);
  advice.expected = trial.with(advice.size, limits.min_idle);
  if (!trial.met(advice.expected) && trial.met(trial.with(advice.size, advice.size))) {
    advice.min_idle = trial.smallest_min_idle(advice.size);
    advice.expected = trial.with(advice.size, advice.min_idle);
  } else {
    advice.min_idle = std::min(limits.min_idle, advice.size);
  }
  advice.met = trial.met(advice.expected);
  advice.current = trial.with(limits.size, limits.min_idle);
  std::tie(advice.range_min, advice.range_max) = range_of(load, limits, wait_timeout, advice, largest);
  return advice;
}

}  // namespace carpool::pool
