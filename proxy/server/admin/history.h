// History: the last 15 minutes of all origins together and of each one, for the plots of the page: one point every five
// seconds, in rings of fixed size. At most kMaxOrigins origins have a ring (5 KB each, 1.3 MB in all); further ones
// count only in the sum. An origin without a ring keeps its counts if it has a label of its own in the metrics, so that
// its next ring starts from them. Memory is limited by kMaxOrigins and [metrics] max_origins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

class History {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(5);
  static constexpr std::size_t kPoints = 180;
  static constexpr std::size_t kMaxOrigins = 256;

  struct Point {
    float requests = 0, failed = 0;  // per second
    float p50 = -1, p99 = -1;        // seconds; negative: no request ended
    std::uint32_t waiting = 0, busy = 0, open = 0;
  };
  static_assert(sizeof(Point) * kPoints <= 5040);

  // Adds a point to each ring. Must be called by one thread only.
  void sample(const AdminView& view, Instant now);
  // Past: the points of an origin, oldest first; of all origins together if `origin` is empty. Absent if it has no
  // ring. Any thread.
  struct Past {
    std::vector<Point> points;
    Duration age{};  // age of the last point
  };
  std::optional<Past> of(const std::string& origin, Instant now) const;
  struct Recent {
    std::uint64_t requests = 0, failed = 0;
  };
  Recent last(Duration time, const std::string& origin) const;  // any thread
  std::size_t origins() const;                                  // number of origins with a ring
  std::size_t known() const;  // number of origins whose counts are kept; at least origins()

 private:
  struct Ring {
    std::array<Point, kPoints> points;
    std::size_t count = 0;  // number of points ever added
    void add(const Point& point) { points[count++ % kPoints] = point; }
    std::vector<Point> all() const;
  };
  struct Entry {
    TrafficInfo before;
    std::unique_ptr<Ring> ring;  // null: freed after 15 minutes without a pool, or none was left
    std::size_t absent = 0;      // points since its pool was last seen
    bool sampled = false;        // the current point has been added
  };
  Entry& entry_of(const std::string& label) REQUIRES(mutex_);  // with a ring, if one is left
  void add(Entry& entry, const std::string& label, const PoolInfo* pool, const AdminView& view) REQUIRES(mutex_);
  void sample_without_pool(const AdminView& view) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
  Ring whole_ GUARDED_BY(mutex_){};
  std::size_t rings_ GUARDED_BY(mutex_) = 0;
  Instant last_ GUARDED_BY(mutex_){};
  double seconds_ GUARDED_BY(mutex_) = 0;  // length of the current point
  TrafficInfo whole_before_ GUARDED_BY(mutex_);
};

// Interpolates within a bucket, as Prometheus' histogram_quantile(). Negative if no request was counted.
float quantile(const std::array<std::uint64_t, metrics::kBuckets>& times, double share);

}  // namespace carpool::proxy::admin
