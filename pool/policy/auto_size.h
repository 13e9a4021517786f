// AutoSize: the measurements of a destination whose size follows the load, and the decisions based on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "pool/policy/limits.h"
#include "pool/policy/response_times.h"
#include "pool/policy/size_change.h"
#include "pool/policy/size_controller.h"

namespace carpool::pool {

// The members without an underscore are guarded by the destination's mutex; ResponseTimes synchronise themselves.
struct AutoSize {
  AutoSize(const Limits& limits, unsigned loop_count)
      : controller(limits.min_size, limits.max_size),
        times(std::make_unique<ResponseTimes[]>(loop_count)),
        loops(loop_count) {}

  // Restarts the measurement.
  void begin(std::uint64_t dials_refused, std::uint64_t timeouts, Instant now) {
    seen = {};
    begun = now;
    before = counts();
    refused_before = dials_refused;
    timeouts_before = timeouts;
  }
  ResponseCounts counts() const {
    ResponseCounts all;
    for (unsigned loop = 0; loop < loops; ++loop) times[loop].read(all);
    return all;
  }

  // Notes a request that needs a connection, or a tunnel that needs a place, which only the size forbids. turned_away:
  // the wait queue was full, too.
  void note_at_size() { seen.at_size = true; }
  void note_turned_away() {
    seen.at_size = true;
    ++seen.late;
  }

  // Notes that a tunnel waited for a place, where the size limits the places.
  void note_place_wait(Duration waited) {
    if (waited > controller.tolerable_wait()) note_turned_away();
  }

  // Notes that a request waited for a connection. Must be called on its loop.
  void note_wait(unsigned loop, Duration waited) {
    if (waited > Duration(tolerable_wait.load(std::memory_order_relaxed))) times[loop].late();
  }

  SizeController controller;
  SizeHistory history;
  const std::unique_ptr<ResponseTimes[]> times;  // one per loop
  const unsigned loops;
  LoadSample seen;  // so far; the differences of counts are taken when it is complete
  Instant begun{};
  ResponseCounts before;
  std::uint64_t refused_before = 0, timeouts_before = 0;
  std::atomic<Duration::rep> tolerable_wait{Duration(std::chrono::milliseconds(1)).count()};  // relaxed: a limit
};

}  // namespace carpool::pool
