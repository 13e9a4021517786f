#include "pool/directory/explain_size.h"

#include <algorithm>

#include "pool/directory/phrases.h"

namespace carpool::pool {

namespace {
constexpr std::size_t kShownChanges = 3;
using phrases::number;

std::string median_of(const LoadSample& seen) {
  return "the median time to a response was " + phrases::time(seen.median);
}
}  // namespace

std::string why_resized(const SizeChange& change) {
  const LoadSample& seen = change.seen;
  switch (change.reason) {
    case SizeReason::waits:
      return number(seen.late, "request", "requests") + " waited too long for a connection" +
             (seen.responses != 0 ? "; " + median_of(seen) : std::string());
    case SizeReason::latency:
      return median_of(seen) + ", and " + phrases::time(change.lowest) + " with fewer requests at once";
    case SizeReason::restored:
      return median_of(seen) + " with fewer connections too: the origin is slower with any number of requests";
    case SizeReason::refused:
      return "the origin answered 429 or 503, or not in time, to " + std::to_string(seen.refused) + " of " +
             number(seen.responses + seen.refused, "request", "requests");
    case SizeReason::dials:
      return "the origin refused " + number(seen.dials_refused, "dial", "dials") + " beside the " +
             number(seen.open, "connection", "connections") + " that it had accepted";
  }
  return {};
}

void explain_size(const AutoSizeSnapshot& size, std::vector<std::string>& lines) {
  const SizeHistory& history = size.history;
  std::string counts;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kSizeReasons.size(); ++i) {
    const std::uint64_t count = history.counts()[i];
    all += count;
    if (count != 0)
      counts.append(counts.empty() ? ": " : ", ").append(std::to_string(count) + " ").append(kSizeReasons[i]);
  }
  lines.push_back("The size follows the load, from " + std::to_string(size.min_size) + " to " +
                  std::to_string(size.max_size) + " (pool.size is \"auto\"): it has changed " +
                  number(all, "time", "times") + counts + ".");
  for (std::size_t back = 0; back < std::min(history.size(), kShownChanges); ++back) {
    const SizeChange& change = history.last(back);
    lines.push_back(phrases::time(std::max(Duration::zero(), size.now - change.when)) + " ago it went from " +
                    std::to_string(change.from) + " to " + std::to_string(change.to) + " because " +
                    why_resized(change) + " (reason " + std::string(name(change.reason)) + ").");
  }
}

}  // namespace carpool::pool
