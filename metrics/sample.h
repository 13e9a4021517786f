// What others know and a scrape tells: plain values, filled by whoever holds them. metrics knows no pool and no
// threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/histogram.h"

namespace carpool::metrics {

// A number under the one label that tells it from its sisters; the name is a constant of its owner.
struct Labelled {
  std::string_view label;
  std::uint64_t value = 0;
};

// A priority class of an origin's pool.
struct ClassSample {
  std::string name;
  std::uint64_t waiting = 0, leases = 0, share = 0;
};

// A destination's snapshot. Several with one label, or beyond max_origins, are added up.
struct OriginSample {
  std::string label;
  std::uint64_t borrows = 0, restores = 0, leaks = 0;
  std::vector<Labelled> opened, closed;  // by cause; zeros need not be named
  std::vector<Labelled> failures;        // by reason
  std::vector<Labelled> connections;     // by state
  std::vector<Labelled> addresses;       // by state
  std::uint64_t peak = 0, size = 0, waiting = 0;
  std::uint64_t probing = 0, undialed = 0;
  std::vector<ClassSample> classes;
};

// Of the thread pool and the strategies.
struct ExecSample {
  std::vector<Labelled> tasks, handovers, threads;
  std::uint64_t threads_max = 0, queue = 0;
  bool low_on_threads = false;
  HistogramTotals queue_wait;
};

struct ProcessSample {
  double cpu_seconds = 0, start_time_seconds = 0;
  std::uint64_t resident_bytes = 0, virtual_bytes = 0, open_fds = 0, max_fds = 0;
};
// Of this process, from /proc; what cannot be read is absent.
std::optional<ProcessSample> read_process();

struct BuildSample {
  std::string version, compiler, build;  // build: the build type
};

// Of memory and descriptors, and what is shed for it.
struct OverloadSample {
  std::uint64_t stage = 0;
  double memory_ratio = 0, descriptor_ratio = 0;  // of what may be used; 0: no limit
  std::uint64_t failed_allocations = 0;           // that the reserve served
  std::uint64_t memory_returned = 0;              // bytes, to the kernel
};

// The configuration, and who asks for it.
struct AdminSample {
  struct Door {
    const char* name = "";
    std::uint64_t ended_for_others = 0, refused = 0;
  };
  std::uint64_t reloads_applied = 0, reloads_refused = 0, connections = 0;
  std::vector<Door> doors;
  std::vector<Labelled> reload_limits;
};

struct Sample {
  std::vector<OriginSample> origins;
  std::uint64_t pools = 0, pools_max = 0, pools_reclaimed = 0, pools_evicted = 0, pools_starved = 0;
  std::optional<ExecSample> exec;
  std::optional<ProcessSample> process;
  BuildSample build;
  std::optional<OverloadSample> overload;
  std::optional<AdminSample> admin;
  std::uint64_t log_dropped = 0;
  std::vector<Labelled> reviews;       // of the webhook, by outcome; none: it is not one
  std::vector<Labelled> webhook_shed;  // the same, by what was closed
  std::vector<Labelled> webhook_limits;
};

}  // namespace carpool::metrics
