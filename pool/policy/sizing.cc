#include "pool/policy/sizing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace carpool::pool {

namespace {
constexpr double kMayWait = 0.01;
constexpr std::uint32_t kLargest = 100'000;
constexpr Duration kIdleGap = std::chrono::seconds(1);

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

// A change of a number at one time. At equal times decreases sort first: one lease ended when the other began.
using LevelChange = std::pair<Instant, int>;

// The numbers of borrows in progress at once.
struct Levels {
  std::uint32_t median = 0, p99 = 0, max = 0;  // weighted by time; without the times at which none was
};

void add_interval(std::vector<LevelChange>& steps, Instant begin, Duration lasted) {
  if (lasted <= Duration::zero()) return;  // its end would sort before its beginning
  steps.emplace_back(begin, 1);
  steps.emplace_back(begin + lasted, -1);
}

// Periods at level 0 that are longer than kIdleGap do not count.
Levels levels_of(std::vector<LevelChange>& steps) {
  if (steps.empty()) return {0, 0, 1};
  std::sort(steps.begin(), steps.end());
  std::vector<Duration> lasted(steps.size() + 1);
  int now = 0;
  Levels levels;
  Duration all{};
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    now += steps[i].second;
    const Duration time = steps[i + 1].first - steps[i].first;
    if (time == Duration::zero()) continue;
    levels.max = std::max(levels.max, static_cast<std::uint32_t>(now));
    if (now == 0 && time >= kIdleGap) continue;
    lasted[static_cast<std::size_t>(now)] += time;
    all += time;
  }
  Duration sum{};
  for (std::uint32_t level = 0; level < lasted.size(); ++level) {
    if (sum * 2 < all) levels.median = level;
    if (seconds(sum) < 0.99 * seconds(all)) levels.p99 = level;
    sum += lasted[level];
  }
  return levels;
}

// Returns the time from the first arrival to the last end, without gaps of kIdleGap or longer.
Duration time_in_use(std::vector<BorrowRecord> borrows) {
  std::sort(borrows.begin(), borrows.end(), [](const auto& a, const auto& b) { return a.arrived < b.arrived; });
  Duration sum{};
  Instant until = borrows.front().arrived;
  for (const BorrowRecord& borrow : borrows) {
    const Instant end = borrow.arrived + borrow.waited + borrow.held;
    if (borrow.arrived - until < kIdleGap)
      sum += std::max(end, until) - until;
    else
      sum += end - borrow.arrived;
    until = std::max(until, end);
  }
  return sum;
}

void count_levels(const std::vector<BorrowRecord>& borrows, MeasuredLoad& load) {
  std::vector<LevelChange> leases, asked;
  for (const BorrowRecord& borrow : borrows) {
    add_interval(leases, borrow.arrived + borrow.waited, borrow.held);
    add_interval(asked, borrow.arrived, borrow.waited + borrow.held);
  }
  const Levels busy = levels_of(leases);
  load.busy_median = busy.median;
  load.busy_p99 = busy.p99;
  load.busy_max = busy.max;
  load.asked_max = levels_of(asked).max;
}

// Returns the 99th percentile by rank. Reorders `all`, which must not be empty.
Duration percentile_99(std::vector<Duration>& all) {
  const auto at = all.begin() + static_cast<std::ptrdiff_t>((all.size() * 99 + 99) / 100 - 1);
  std::nth_element(all.begin(), at, all.end());
  return *at;
}
}  // namespace

// Uses the recursion of Erlang's B, which stays between 0 and 1 and so never overflows.
double erlang_c(std::uint32_t servers, double offered_load) {
  if (offered_load >= servers) return 1;
  double blocked = 1;
  for (std::uint32_t n = 1; n <= servers; ++n) blocked = offered_load * blocked / (n + offered_load * blocked);
  return servers * blocked / (servers - offered_load * (1 - blocked));
}

std::uint32_t erlang_size(const MeasuredLoad& load) {
  const double hold = seconds(load.mean_hold), goal = std::max(hold / 10, 0.001);
  auto size = static_cast<std::uint32_t>(std::min<double>(std::floor(load.offered_load), kLargest)) + 1;
  const auto too_late = [&](std::uint32_t c) {
    return erlang_c(c, load.offered_load) * std::exp(-(c - load.offered_load) * goal / hold);
  };
  while (size < kLargest && too_late(size) > kMayWait) ++size;
  return std::max(size, load.busy_p99);
}

std::optional<MeasuredLoad> measure_load(const std::vector<BorrowRecord>& borrows) {
  if (borrows.size() < kMinBorrows) return std::nullopt;
  MeasuredLoad load;
  load.borrows = borrows.size();
  Instant first = Instant::max(), last = Instant::min();
  Duration held{}, waited{};
  std::vector<Duration> holds, waits;
  for (const BorrowRecord& borrow : borrows) {
    first = std::min(first, borrow.arrived);
    last = std::max(last, borrow.arrived + borrow.waited + borrow.held);
    held += borrow.held;
    waited += borrow.waited;
    holds.push_back(borrow.held);
    waits.push_back(borrow.waited);
  }
  const auto count = static_cast<Duration::rep>(borrows.size());
  load.window = last - first;
  load.in_use = time_in_use(borrows);
  load.mean_hold = std::max<Duration>(held / count, std::chrono::microseconds(1));
  load.p99_hold = percentile_99(holds);
  load.mean_wait = waited / count;
  load.p99_wait = percentile_99(waits);
  load.arrival_rate = static_cast<double>(count) / std::max(seconds(load.in_use), 1e-6);
  load.offered_load = load.arrival_rate * seconds(load.mean_hold);
  count_levels(borrows, load);
  return load;
}

}  // namespace carpool::pool
