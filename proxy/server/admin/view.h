// AdminView: the state of the running program that the admin endpoint may read. Results are copies, so nothing stays
// locked or held.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "metrics/histogram.h"
#include "metrics/sample.h"
#include "pool/destination/snapshot.h"
#include "proxy/server/admin/credentials_state.h"
#include "proxy/server/admin/handlers/pool_analysis.h"
#include "proxy/telemetry/leak_record.h"

namespace carpool::metrics {
class Registry;
}

namespace carpool::proxy::admin {

enum class ConfigFormat : std::uint8_t { json, toml };

struct AddressInfo {
  std::string address;
  std::string_view state;  // "usable", "ejected", "gone"
  std::uint32_t open = 0;  // number of connections
  std::uint32_t failures = 0, ejections = 0;
  std::uint32_t busy = 0;      // requests in progress
  std::uint64_t requests = 0;  // total number of requests
  Duration response{};         // moving average of the time to the response; zero: unknown
  double share = 1;            // fraction of its turns that it uses; below 1 while the address is new
};

struct PoolInfo {
  std::string origin;  // label
  pool::Destination::Snapshot snapshot;
  std::optional<Duration> learned_idle_timeout;
  std::vector<std::string> classes;  // names, highest priority first
  // Savings by reuse: dials avoided, and the time and CPU time of their handshakes.
  struct Saved {
    std::uint64_t dials = 0;
    Duration time{}, cpu{};
  };
  Saved saved{};
  // Limited: requests and connections limited by request.rate and pool.connect_rate.
  struct Limited {
    std::uint64_t requests = 0, connections = 0;
  };
  Limited limited{};
  struct AddressCounts {
    std::uint32_t usable = 0, ejected = 0, gone = 0;
  };
  AddressCounts addresses{};
  // Failing: most requests of this time failed, or the last dial did.
  struct Failing {
    std::uint64_t requests = 0, failed = 0;
    std::optional<Duration> time;  // nullopt: since the start
    std::string_view reason;       // why the last dial failed; empty if it succeeded
  };
  std::optional<Failing> failing{};
  std::vector<AddressInfo> each_address{};        // empty unless there are several
  std::optional<CredentialsState> credentials{};  // absent: none
  bool replaced = false;  // a reload gave the origin another pool, which precedes this one in each list
};

// TrafficInfo: counts of an origin's requests since the start. `times`: their number by duration, in the buckets of
// metrics::kBounds.
struct TrafficInfo {
  std::uint64_t requests = 0, failed = 0;  // failed: 5xx, or ended without a status
  std::array<std::uint64_t, metrics::kBuckets> times{};
};

// OriginInfo: an origin with a pool or with an [[origin]].
struct OriginInfo {
  std::string origin;  // label
  std::vector<std::string> alias;
  bool pool = false;  // a pool exists
};

struct ReclaimedInfo {
  pool::Destination::Snapshot sums;
  std::uint64_t pools = 0, evicted = 0, max_origins = 0, starved = 0;
  std::uint64_t untracked = 0;  // number of connections that are in no pool
};

struct CountedPools {
  std::vector<PoolInfo> pools;
  ReclaimedInfo reclaimed;
  std::vector<PoolInfo> ended;  // counters of pools that a reload replaced, by origin
};

struct ConnectionInfo {
  std::uint64_t id = 0;  // 0 while connecting
  pool::ConnectionStatus state = pool::ConnectionStatus::connecting;
  pool::OpenCause opened = pool::OpenCause::first;
  Duration age{}, idle{};
  std::uint32_t uses = 0;
  std::uint32_t streams = 0;  // exchanges in progress on it
  unsigned loop = 0;
  std::string protocol;             // "h1", "h2"
  std::string local, peer;          // addresses
  std::string tls_version, cipher;  // empty: plain text
  std::string borrower;             // description of the borrower; empty if none
};

// ThreadsInfo: the threads at one instant. Names live as long as the process.
struct ThreadsInfo {
  struct Reserve {
    unsigned capacity = 0, available = 0, pending = 0;
  };
  struct Tasks {  // blocking tasks, queued or running
    unsigned limit = 0, existing = 0;
    std::uint64_t refused = 0;
  };
  struct Source {
    const char* name = "";
    unsigned limit = 0, queued = 0;
    std::uint64_t refused = 0;
  };
  struct Background {
    unsigned queued = 0, running = 0, max_running = 0;
    std::uint64_t executed = 0;
  };
  struct Thread {
    unsigned number = 0;
    const char* state = "";
    const char* activity = "";
    Duration since{};
  };
  struct Task {
    const char* name = "";
    bool running = false;
    Duration since{};
  };
  std::string strategy;
  unsigned min = 0, max = 0, leases = 0;
  Reserve reserve;
  Tasks tasks;
  std::size_t queue = 0, queue_limit = 0;
  std::vector<Source> sources;
  Background background;
  std::uint64_t started = 0, left = 0, start_failures = 0, failed = 0;
  std::vector<Thread> threads;
  std::vector<Task> background_tasks;
};

struct OverloadInfo {
  struct Use {
    std::uint64_t used = 0, limit = 0;  // limit 0: unlimited
  };
  std::string shed_level;   // "nothing", "keep_alive", "new_clients", "idle"
  std::uint64_t stage = 0;  // the same as a number
  Use memory, descriptors;
  std::uint64_t failed_allocations = 0;          // allocations served by the reserve
  std::uint64_t heap_used = 0, heap_unused = 0;  // bytes: allocated; resident but unused
  std::uint64_t memory_returned = 0;             // bytes returned to the kernel
};

class History;

class AdminView {
 public:
  virtual std::vector<PoolInfo> pools() const = 0;
  // Returns a consistent snapshot of all pools, with the counters of reclaimed ones.
  virtual CountedPools counted() const { return {pools(), {}, {}}; }
  // Returns an [[origin]] of the configuration that no request has used yet, as an empty pool.
  virtual std::optional<PoolInfo> declared(const std::string& origin) const {
    static_cast<void>(origin);
    return std::nullopt;
  }
  virtual TrafficInfo traffic(const std::string&) const { return {}; }
  virtual TrafficInfo total_traffic() const { return {}; }  // of all origins, including those without a pool
  virtual std::vector<OriginInfo> origins() const { return {}; }
  virtual const History* history() const { return nullptr; }  // null: none is kept
  // Connections of the origin with this label; empty if there is none.
  virtual std::vector<ConnectionInfo> connections(const std::string& origin) const = 0;
  // Sets the borrowers. Waits for each loop's current turn, because only the loops have this data.
  virtual void name_borrowers(const std::string& origin, std::vector<ConnectionInfo>& connections) const = 0;
  virtual std::vector<AddressInfo> addresses(const std::string&) const { return {}; }
  // Returns the input for the analysis of an origin's pool; empty if it has none.
  virtual std::optional<PoolAnalysis> study(const std::string& origin) const = 0;
  virtual std::vector<LeakRecord> leaks() const = 0;  // newest first

  virtual const metrics::Registry* registry() const = 0;  // null: metrics are off
  virtual std::optional<metrics::ExecSample> exec() const = 0;
  virtual ThreadsInfo threads() const = 0;
  virtual std::uint64_t log_dropped() const = 0;
  virtual metrics::BuildSample build() const = 0;
  virtual OverloadInfo overload() const = 0;
  virtual metrics::AdminSample admin() const = 0;
  virtual std::vector<metrics::CertificateSample> certificates() const { return {}; }
  virtual std::optional<metrics::InterceptSample> intercept() const { return std::nullopt; }

  virtual std::vector<std::string> not_ready() const = 0;         // reasons; empty: ready
  virtual std::vector<std::string> warm_ups_failed() const = 0;   // at start, with the reason; they are retried
  virtual std::vector<std::string> paused() const { return {}; }  // labels of the pools that an operator paused
  virtual std::string config(ConfigFormat format) const = 0;      // the effective configuration, without secrets

 protected:
  ~AdminView() = default;
};

}  // namespace carpool::proxy::admin
