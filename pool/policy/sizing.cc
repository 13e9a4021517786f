#include "pool/policy/sizing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace carpool::pool {

namespace {
constexpr double kMayWait = 0.01;
constexpr std::uint32_t kLargest = 100'000;

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}
Duration from_seconds(double time) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time));
}

Duration percentile(std::vector<Duration>& all, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(all.size())));
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

// The number of concurrent leases, weighted by time.
struct Busy {
  std::uint32_t median = 0, p99 = 0, most = 0;
};

Busy count_busy(const std::vector<BorrowRecord>& stays) {
  std::vector<std::pair<Instant, int>> steps;
  for (const BorrowRecord& stay : stays) {
    if (stay.held <= Duration::zero()) continue;  // no duration; its end would sort before its beginning
    steps.emplace_back(stay.arrived + stay.waited, 1);
    steps.emplace_back(stay.arrived + stay.waited + stay.held, -1);
  }
  if (steps.empty()) return {0, 0, 1};
  std::sort(steps.begin(), steps.end());  // at equal times ends sort first: one lease ended as the other began
  std::vector<Duration> lasted(stays.size() + 1);
  int now = 0;
  Busy busy;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    now += steps[i].second;
    lasted[static_cast<std::size_t>(now)] += steps[i + 1].first - steps[i].first;
    if (steps[i + 1].first != steps[i].first) busy.most = std::max(busy.most, static_cast<std::uint32_t>(now));
  }
  const Duration all = steps.back().first - steps.front().first;
  Duration sum{};
  for (std::uint32_t level = 0; level < lasted.size(); ++level) {
    if (sum * 2 < all) busy.median = level;
    if (seconds(sum) < 0.99 * seconds(all)) busy.p99 = level;
    sum += lasted[level];
  }
  return busy;
}

std::optional<Duration> mean_wait(std::uint32_t size, double load, Duration hold) {
  if (load >= size) return std::nullopt;
  return from_seconds(erlang_c(size, load) * seconds(hold) / (size - load));
}

// Returns the smallest size with which 99 % wait no longer than the goal.
std::uint32_t smallest(double load, Duration hold, Duration goal) {
  auto size = static_cast<std::uint32_t>(std::min<double>(std::floor(load), kLargest)) + 1;
  const auto too_late = [&](std::uint32_t c) {
    return erlang_c(c, load) * std::exp(-(c - load) * seconds(goal) / seconds(hold));
  };
  while (size < kLargest && too_late(size) > kMayWait) ++size;
  return size;
}
}  // namespace

// Uses the recursion of Erlang's B, which stays between 0 and 1 and so never overflows.
double erlang_c(std::uint32_t servers, double offered_load) {
  if (offered_load >= servers) return 1;
  double blocked = 1;
  for (std::uint32_t n = 1; n <= servers; ++n) blocked = offered_load * blocked / (n + offered_load * blocked);
  return servers * blocked / (servers - offered_load * (1 - blocked));
}

std::optional<Advice> recommend_size(const std::vector<BorrowRecord>& stays, std::uint32_t present_size) {
  if (stays.size() < kFewestForAdvice) return std::nullopt;
  Advice advice;
  advice.borrows = stays.size();
  Instant first = Instant::max(), last = Instant::min(), last_arrival = Instant::min();
  Duration held{}, waited{};
  std::vector<Duration> holds, waits;
  for (const BorrowRecord& stay : stays) {
    first = std::min(first, stay.arrived);
    last_arrival = std::max(last_arrival, stay.arrived);
    last = std::max(last, stay.arrived + stay.waited + stay.held);
    held += stay.held;
    waited += stay.waited;
    holds.push_back(stay.held);
    waits.push_back(stay.waited);
  }
  const auto count = static_cast<Duration::rep>(stays.size());
  advice.window = last - first;
  const double span = std::max(seconds(last_arrival - first), 1e-6);
  advice.arrival_rate = static_cast<double>(count - 1) / span;
  advice.mean_hold = std::max<Duration>(held / count, std::chrono::microseconds(1));
  advice.p99_hold = percentile(holds, 0.99);
  advice.mean_wait = waited / count;
  advice.p99_wait = percentile(waits, 0.99);
  advice.offered_load = advice.arrival_rate * seconds(advice.mean_hold);
  const Busy busy = count_busy(stays);
  advice.busy_median = busy.median;
  advice.busy_p99 = busy.p99;
  advice.busy_most = busy.most;
  advice.goal = std::max<Duration>(advice.mean_hold / 10, std::chrono::milliseconds(1));
  // Bursty arrivals are not a Poisson process: never recommend less than busy moments used.
  advice.size = std::max(smallest(advice.offered_load, advice.mean_hold, advice.goal), busy.p99);
  advice.min_idle = std::min(advice.size, busy.p99 - busy.median);
  advice.expected_wait = mean_wait(advice.size, advice.offered_load, advice.mean_hold);
  advice.expected_wait_as_it_is = mean_wait(present_size, advice.offered_load, advice.mean_hold);
  return advice;
}

}  // namespace carpool::pool
