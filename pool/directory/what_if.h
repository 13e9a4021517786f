// simulate(): predicts the effect of other settings. Recorded arrivals and hold times drive the production pool on a
// virtual clock, with one loop, dials of average duration and an origin that closes idle connections as observed. A
// client that sent its next request directly after a response does so in the simulation, too (replay_plan.h). No
// payload, no I/O; milliseconds of CPU for thousands of borrows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "pool/destination/destination.h"
#include "pool/policy/borrow_history.h"
#include "pool/policy/cause.h"

namespace carpool::pool {

struct Workload {
  std::vector<BorrowRecord> borrows;            // in any order
  Duration dial_time{};                         // of one connection
  std::optional<Duration> origin_closes_after;  // idle time after which the origin closes a connection
  std::uint32_t streams = 1;                    // that a connection serves at once; 1: HTTP/1.1
  bool warm = false;                            // limits.size connections are open when the first borrow arrives
  std::uint32_t peak = 0;                       // highest number of connections; 0: unknown
};

struct SimulationResult {
  std::uint64_t served = 0, refused = 0, timed_out = 0;
  std::uint64_t opened = 0, reused = 0;  // dials; borrows of a connection that had served before
  std::array<std::uint64_t, kOpenCauseNames.size()> opened_by{};
  std::array<std::uint64_t, kCloseCauseNames.size()> closed_by{};
  std::uint32_t peak = 0;
  std::uint64_t waited = 0;  // borrows that were not served at once
  Duration mean_wait{}, p50_wait{}, p99_wait{}, p995_wait{}, longest_wait{};
};

// Deterministic: equal workloads and limits give equal results.
SimulationResult simulate(const Workload& load, const Limits& limits, Duration wait_timeout);

}  // namespace carpool::pool
