#include "proxy/server/admin/history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "metrics/histogram.h"
#include "pool/destination/snapshot.h"

namespace carpool::proxy::admin {
namespace {

std::uint64_t less(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

TrafficInfo difference(const TrafficInfo& now, const TrafficInfo& before) {
  TrafficInfo more;
  more.requests = less(now.requests, before.requests);
  more.failed = less(now.failed, before.failed);
  for (std::size_t i = 0; i < more.times.size(); ++i) more.times[i] = less(now.times[i], before.times[i]);
  return more;
}

History::Point point_of(const TrafficInfo& more, double seconds) {
  History::Point point;
  point.requests = static_cast<float>(static_cast<double>(more.requests) / seconds);
  point.failed = static_cast<float>(static_cast<double>(more.failed) / seconds);
  point.p50 = quantile(more.times, 0.5);
  point.p99 = quantile(more.times, 0.99);
  return point;
}

void set_gauges(History::Point& point, const PoolInfo& pool) {
  std::uint64_t open = 0;
  for (const std::uint64_t one : pool.snapshot.connections) open += one;
  point.waiting += pool.snapshot.waiting;
  point.busy += static_cast<std::uint32_t>(pool.snapshot.leases());
  point.open += static_cast<std::uint32_t>(open);
}

}  // namespace

float quantile(const std::array<std::uint64_t, metrics::kBuckets>& times, double share) {
  constexpr double kNanosecond = 1e-9;
  std::uint64_t all = 0;
  for (const std::uint64_t one : times) all += one;
  if (all == 0) return -1;
  const double wanted = share * static_cast<double>(all);
  double before = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto here = static_cast<double>(times[i]);
    if (here > 0 && before + here >= wanted) {
      const std::size_t last = metrics::kBounds.size() - 1;
      const double low = i == 0 ? 0 : static_cast<double>(metrics::kBounds[std::min(i - 1, last)]);
      const auto high = static_cast<double>(metrics::kBounds[std::min(i, last)]);
      return static_cast<float>((low + (high - low) * (wanted - before) / here) * kNanosecond);
    }
    before += here;
  }
  return static_cast<float>(static_cast<double>(metrics::kBounds.back()) * kNanosecond);
}

std::vector<History::Point> History::Ring::all() const {
  std::vector<Point> found;
  const std::size_t kept = std::min(count, kPoints);
  found.reserve(kept);
  for (std::size_t i = count - kept; i < count; ++i) found.push_back(points[i % kPoints]);
  return found;
}

History::Entry& History::entry_of(const std::string& label) {
  Entry& entry = entries_[label];
  if (!entry.ring && rings_ < kMaxOrigins) {
    entry.ring = std::make_unique<Ring>();
    ++rings_;
  }
  return entry;
}

// Adds a point for the time since the last call; the first call only records the counters. The counters of an origin
// that appears later have started at zero.
void History::sample(const AdminView& view, Instant now) {
  const std::vector<PoolInfo> pools = view.pools();
  const TrafficInfo total = view.total_traffic();
  const Held lock(mutex_);
  const bool first = last_ == Instant{};
  seconds_ = std::max(std::chrono::duration<double>(now - last_).count(), 0.001);
  last_ = now;
  Point whole = point_of(difference(total, whole_before_), seconds_);
  whole_before_ = total;
  for (const PoolInfo& pool : pools) {
    set_gauges(whole, pool);
    Entry& entry = entry_of(pool.origin);
    if (first || !entry.ring) {
      entry.before = view.traffic(pool.origin);
    } else if (!entry.sampled) {  // else this is a pool that a reload replaced
      add(entry, pool.origin, &pool, view);
      entry.sampled = true;
    }
  }
  if (first) return;
  whole_.add(whole);
  sample_without_pool(view);
}

// Adds a point to the rings of origins without a pool. Frees those of origins that have had none for the length of a
// ring.
void History::sample_without_pool(const AdminView& view) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    if (entry.ring && !std::exchange(entry.sampled, false)) add(entry, at->first, nullptr, view);
    if (entry.ring && entry.absent >= kPoints) entry.ring.reset(), --rings_;
    at = entry.ring || entry.before.requests > 0 ? std::next(at) : entries_.erase(at);
  }
}

// `pool`: null if the origin no longer has one.
void History::add(Entry& entry, const std::string& label, const PoolInfo* pool, const AdminView& view) {
  const TrafficInfo now = view.traffic(label);
  Point point = point_of(difference(now, entry.before), seconds_);
  entry.before = now;
  entry.absent = pool == nullptr ? entry.absent + 1 : 0;
  if (pool != nullptr) set_gauges(point, *pool);
  entry.ring->add(point);
}

std::optional<History::Past> History::of(const std::string& origin, Instant now) const {
  const Held lock(mutex_);
  const Ring* ring = &whole_;
  if (!origin.empty()) {
    const auto found = entries_.find(origin);
    if (found == entries_.end() || !found->second.ring) return std::nullopt;
    ring = found->second.ring.get();
  }
  return Past{ring->all(), now - last_};
}

History::Recent History::last(Duration time, const std::string& origin) const {
  const Held lock(mutex_);
  const auto found = entries_.find(origin);
  if (found == entries_.end() || !found->second.ring) return {};
  const Ring& ring = *found->second.ring;
  double requests = 0, failed = 0;
  for (std::size_t i = ring.count - std::min({ring.count, kPoints, static_cast<std::size_t>(time / kEvery)});
       i < ring.count; ++i) {
    requests += ring.points[i % kPoints].requests;
    failed += ring.points[i % kPoints].failed;
  }
  const double every = std::chrono::duration<double>(kEvery).count();
  return {static_cast<std::uint64_t>(std::llround(requests * every)),
          static_cast<std::uint64_t>(std::llround(failed * every))};
}

std::size_t History::origins() const {
  const Held lock(mutex_);
  return rings_;
}

std::size_t History::known() const {
  const Held lock(mutex_);
  return entries_.size();
}

}  // namespace carpool::proxy::admin
