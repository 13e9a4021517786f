// Sample: the data of a scrape that other components provide, as plain values. metrics depends on neither the pool nor
// threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/histogram.h"

namespace carpool::metrics {

// A value and its one label; the name is a constant of its owner.
struct Labelled {
  std::string_view label;
  std::uint64_t value = 0;
};

// A priority class of an origin's pool.
struct ClassSample {
  std::string name;
  std::uint64_t waiting = 0, leases = 0, limit = 0;
};

// An address of an origin.
struct AddressSample {
  std::string address;
  std::uint64_t connections = 0, leases = 0, requests = 0, response_nanoseconds = 0;
};

// Ages or idle times of the connections that exist at the moment, by kAgeBounds.
struct TimesSample {
  std::array<std::uint32_t, kAgeBounds.size() + 1> counts{};
  std::uint64_t nanoseconds = 0;
};

// A destination's snapshot. Samples with equal labels, or beyond max_origins, are added up.
struct OriginSample {
  std::string label;
  std::uint64_t borrows = 0, restores = 0, leaks = 0;
  std::vector<Labelled> opened, closed;  // by cause; zeros may be omitted
  std::vector<Labelled> failures;        // by reason
  std::vector<Labelled> size_changes;    // by reason
  std::vector<Labelled> connections;     // by state
  std::vector<Labelled> addresses;       // by state
  static constexpr std::size_t kMaxShownAddresses = 16;
  std::vector<AddressSample> each_address;  // of an origin with several, at most kMaxShownAddresses
  TimesSample ages, idle_times;
  std::uint64_t peak = 0, size = 0, waiting = 0, longest_wait_nanoseconds = 0;
  std::uint64_t probing = 0, undialed = 0, paused = 0, cooling_down = 0, cool_downs = 0;
  std::vector<ClassSample> classes;
};

// A worker's loop: its turns, and how late its timers ran.
struct LoopSample {
  HistogramTotals turns, delays;
};

// Figures of the thread pool, the strategies and the loops.
struct ExecSample {
  std::vector<Labelled> tasks, handovers, threads;
  std::uint64_t handovers_paused = 0;
  std::uint64_t threads_max = 0, queue = 0;
  bool low_on_threads = false;
  HistogramTotals queue_wait;
  std::vector<LoopSample> loops;  // [worker]
  std::uint64_t refused = 0;      // tasks, by threads.max_tasks
};

struct ProcessSample {
  double cpu_seconds = 0, start_time_seconds = 0;
  std::uint64_t resident_bytes = 0, virtual_bytes = 0, open_fds = 0, max_fds = 0;
};
// Returns figures of this process, from /proc; nullopt if they cannot be read.
std::optional<ProcessSample> read_process();

struct BuildSample {
  std::string version, compiler, build;  // build: the build type
};

// Memory and descriptor use, and load shed because of them.
struct OverloadSample {
  std::uint64_t stage = 0;
  double memory_ratio = 0, descriptor_ratio = 0;  // fraction of the limit; 0: no limit
  std::uint64_t failed_allocations = 0;           // served from the memory reserve
  std::uint64_t memory_returned = 0;              // bytes, to the kernel
};

// The refusals of certificates at an origin by one kind of client.
struct RefusalSample {
  std::string origin;
  std::string_view offer, alert;
  std::uint64_t refusals = 0;
};

// The authority of intercepted origins, and the certificates that it signs.
struct InterceptSample {
  std::uint64_t minted = 0, failed = 0;
  std::uint64_t leaves = 0;                 // valid now
  std::optional<double> authority_seconds;  // until it expires; absent: no origin is intercepted
  std::vector<RefusalSample> refusals;      // without zeros
};

// The configuration and the admin connections.
struct AdminSample {
  struct Listener {
    const char* name = "";
    std::uint64_t ended_for_others = 0, refused = 0;
  };
  std::uint64_t reloads_applied = 0, reloads_refused = 0, connections = 0;
  struct Abuse {
    const char* listener = "";
    std::string_view kind;
    std::uint64_t count = 0;
  };
  std::uint64_t event_listeners = 0, event_renderings = 0;  // of /events
  std::vector<Listener> listeners;
  std::vector<Abuse> abuses;         // of HTTP/2 connections
  std::vector<Labelled> handshakes;  // of TLS, by result
  std::vector<Labelled> reload_limits;
};

struct CertificateSample {
  std::string use, file;  // use: listener, admin, client, authority, webhook
  double end = 0;         // Unix time
};

struct Sample {
  std::vector<OriginSample> origins;
  std::vector<CertificateSample> certificates;
  std::uint64_t pools = 0, pools_max = 0, pools_reclaimed = 0, pools_evicted = 0, pools_starved = 0;
  std::uint64_t untracked = 0;  // connections that are in no pool
  std::optional<ExecSample> exec;
  std::optional<ProcessSample> process;
  BuildSample build;
  std::optional<OverloadSample> overload;
  std::optional<AdminSample> admin;
  std::optional<InterceptSample> intercept;
  std::uint64_t log_dropped = 0;
  std::vector<Labelled> reviews;       // of the webhook, by outcome; empty: not a webhook
  std::vector<Labelled> webhook_shed;  // of the webhook, by what was closed
  std::vector<Labelled> webhook_limits;
};

}  // namespace carpool::metrics
