// SizeController: the size of a pool with size = "auto", within bounds, according to its origin's responses. Each
// update() takes the measurements since the last one and may make one change:
//   waits      requests wait because of the size: it grows, by up to its double. The next measurement decides whether
//              the growth stays: if the median time to a response rose by more than half of the growth, most of it only
//              lengthened a queue in the origin, and the size returns. Each return halves the next growth and doubles
//              the time until then; each growth that stays undoes one of these.
//   latency    such a return; or the median is above kTolerance times its lowest while the size is in use (the latency
//              gradient): the size shrinks towards the ratio of the two.
//   restored   after such a shrink the median did not fall: the origin is slower with any number of requests. The size
//              returns, and the current median counts as the lowest.
//   refused    the origin answers 429 or 503, or not in time, to one request in 20: a quarter less than is in use.
//   dials      the origin answers and refuses connections at the same time: the number that it did accept.
// Without evidence the size stays: a smaller load does not lower it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "pool/policy/size_change.h"

namespace carpool::pool {

// Guarded by the destination's mutex.
class SizeController {
 public:
  static constexpr std::uint64_t kFewest = 20;   // responses whose median counts
  static constexpr std::uint64_t kEnough = 100;  // responses after which no more time is needed
  static constexpr Duration kShortest = std::chrono::milliseconds(400), kLongest = std::chrono::seconds(10);
  static constexpr double kTolerance = 1.5;
  static constexpr double kMaxStep = 1, kSmallestStep = 1.0 / 16;
  static constexpr Duration kShortestHold = std::chrono::seconds(4), kMaxHold = std::chrono::seconds(64);
  static constexpr Duration kMaxTrust = std::chrono::seconds(256);  // in a restored size

  SizeController(std::uint32_t min_size, std::uint32_t max_size) { bounds(min_size, max_size, min_size); }

  std::uint32_t size() const { return size_; }
  std::uint32_t min_size() const { return min_size_; }
  std::uint32_t max_size() const { return max_size_; }
  // Sets new bounds and the size that is in force.
  void bounds(std::uint32_t min_size, std::uint32_t max_size, std::uint32_t size);
  // Requests that wait for longer count as late: a tenth of the lowest median, 1 ms at least.
  Duration tolerable_wait() const;

  // Returns false until the requests that began before the last change have probably ended: measurements until then do
  // not count.
  bool settled(Instant now) const { return now >= settles_at_; }
  // Returns true if measurements since `begun` suffice for update().
  static bool enough(std::uint64_t responses, Instant begun, Instant now);
  std::optional<SizeChange> update(const LoadSample& seen, Instant now);

 private:
  // A change whose effect the next update() measures.
  struct Trial {
    std::uint32_t from = 0;  // the size to return to
    double ratio = 1;        // of the new size and what was in use
    Duration median{};       // before
  };
  std::optional<SizeChange> shrink_as_refused(const LoadSample& seen, Instant now);
  std::optional<SizeChange> shrink_to_accepted(const LoadSample& seen, Instant now);
  std::optional<SizeChange> evaluate(const LoadSample& seen, Instant now);
  std::optional<SizeChange> evaluate_growth(const LoadSample& seen, Instant now);
  std::optional<SizeChange> evaluate_shrink(const LoadSample& seen, Instant now);
  std::optional<SizeChange> follow_gradient(const LoadSample& seen, Instant now);
  std::optional<SizeChange> grow(const LoadSample& seen, Instant now);
  std::optional<SizeChange> change(std::uint32_t to, SizeReason reason, const LoadSample& seen, Instant now);
  bool in_use(const LoadSample& seen) const { return seen.at_size || 2 * seen.busy >= size_; }
  bool slow(Duration median) const;
  void hold_growth(Instant now);

  std::uint32_t min_size_ = 1, max_size_ = 1, size_ = 1;
  Duration lowest_{};  // zero: unknown
  std::optional<Trial> growth_, shrink_;
  double step_ = kMaxStep;
  Duration hold_ = kShortestHold, trust_ = kShortestHold;
  Instant grows_at_{}, shrinks_at_{}, settles_at_{};
};

}  // namespace carpool::pool
