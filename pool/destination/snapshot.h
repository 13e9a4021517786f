// Destination::Snapshot: the data of /pools, /metrics and explain. Consistent: opened - closed = sum of `connections`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pool/destination/destination.h"
#include "pool/policy/size_change.h"
#include "pool/queue/class_quota.h"

namespace carpool::pool {

// The state of a connection as shown to operators.
enum class ConnectionStatus : std::uint8_t {
  connecting,
  idle,
  borrowed,
  expired_idle,
  expired_borrowed,
  draining,
  tunnel
};
inline constexpr std::array<std::string_view, 7> kConnectionStatusNames{
    "connecting", "idle", "borrowed", "expired_idle", "expired_borrowed", "draining", "tunnel"};
constexpr std::string_view name(ConnectionStatus state) {
  return kConnectionStatusNames[static_cast<std::size_t>(state)];
}

// Why a dial, or an exchange on an established connection, failed.
enum class FailureReason : std::uint8_t { dns, refused, timeout, tls, reset, protocol, budget };
inline constexpr std::array<std::string_view, 7> kFailureReasonNames{"dns",   "refused",  "timeout", "tls",
                                                                     "reset", "protocol", "budget"};
constexpr std::string_view name(FailureReason reason) {
  return kFailureReasonNames[static_cast<std::size_t>(reason)];
}
FailureReason reason_of(const Fault& fault);

// Ages or idle times of the connections that exist at the moment.
struct TimeDistribution {
  // Upper bounds (inclusive) of the counts; the last count is above them.
  static constexpr std::array<Duration, 8> kBounds{
      std::chrono::milliseconds(100), std::chrono::seconds(1), std::chrono::seconds(5),  std::chrono::seconds(15),
      std::chrono::seconds(60),       std::chrono::minutes(5), std::chrono::minutes(30), std::chrono::hours(2)};
  std::array<std::uint32_t, kBounds.size() + 1> counts{};
  std::chrono::duration<std::uint64_t, std::nano> sum{};  // enough for 584 years of all connections together

  void add(Duration time);
};

// A size that follows the load, in a snapshot.
struct AutoSizeSnapshot {
  std::uint32_t min_size = 0, max_size = 0;
  SizeHistory history;
  Instant now{};  // of the snapshot
};

struct Destination::Snapshot {
  std::array<std::uint64_t, kOpenCauseNames.size()> opened{};  // by cause
  std::array<std::uint64_t, kCloseCauseNames.size()> closed{};
  std::array<std::uint64_t, kConnectionStatusNames.size()> connections{};  // by state
  TimeDistribution ages, idle_times;                                       // of the connections; of the idle ones
  std::array<std::uint64_t, kFailureReasonNames.size()> failures{};        // of dials and of exchanges, by reason
  std::uint64_t borrows = 0, restores = 0;                                 // borrows - restores = current leases
  std::uint64_t leaks = 0;      // leases destroyed without release or discard
  std::uint64_t created = 0;    // successful dials
  std::optional<Duration> age;  // of the destination, the time of all counts; nullopt: not known
  std::uint64_t undialed = 0;   // waiters that failed with the last dial's error without a dial of their own
  bool probing = false;         // the last dial failed: one probe decides (pool/policy/circuit_breaker.h)
  std::optional<FailureReason> last_dial_failed;  // while `probing`
  // An operator's pause: for how long it has lasted, and after how long it ends by itself (nullopt: by resume only).
  struct Paused {
    Duration age{};
    std::optional<Duration> left;
    bool drains = false;
  };
  std::optional<Paused> paused;
  // A pause that the origin requested with this status and Retry-After; `left` zero: a trial is in progress.
  struct CoolingDown {
    Duration age{}, left{};
    std::uint16_t status = 0;
  };
  std::optional<CoolingDown> cooling_down;
  std::uint64_t cool_downs = 0;
  std::uint32_t waiting = 0;            // current waiters
  std::uint32_t waiting_for_place = 0;  // of these, tunnels that wait for a place of max_tunnels
  Duration max_wait{};                  // of the longest waiting borrower
  bool starved = false;                 // they wait for a slot of the total that other destinations have
  std::uint32_t size = 0, peak = 0;
  std::uint64_t waited_at_size = 0;           // borrowers that waited because the size allowed no dial for them
  std::optional<AutoSizeSnapshot> auto_size;  // nullopt: the size is fixed
  // The learned idle timeout of the origin, and the idle time after which connections are retired; nullopt: unknown.
  std::optional<Duration> learned_idle, effective_limit;
  std::optional<Duration> trust;  // see Destination::trust(); nullopt: unknown
  Duration dial_time{};           // average; zero: none succeeded yet
  std::uint32_t streams = 0;      // that the last connection served at once; 1: HTTP/1.1; 0: unknown
  // Priority classes, the highest first; empty if not configured. limit: of the leases of the class and those below
  // together.
  struct Class {
    std::uint32_t waiting = 0;
    std::uint64_t leases = 0, limit = 0;
  };
  std::array<Class, ClassQuota::kMaxClasses> classes{};
  std::size_t class_count = 0;

  std::uint64_t of(ConnectionStatus state) const { return connections[static_cast<std::size_t>(state)]; }
  std::uint64_t leases() const { return borrows - restores; }
  std::uint64_t opened_total() const { return sum(opened); }
  std::uint64_t closed_total() const { return sum(closed); }
  std::uint64_t alive() const { return sum(connections); }  // always opened_total() - closed_total()
  std::uint64_t failed_total() const { return sum(failures); }

 private:
  template <std::size_t N>
  static std::uint64_t sum(const std::array<std::uint64_t, N>& counts) {
    std::uint64_t total = 0;
    for (std::uint64_t count : counts) total += count;
    return total;
  }
};

// One connection, for /pools/{origin}/connections.
struct ConnectionView {
  std::uint32_t index = 0, generation = 0;
  ConnectionStatus state = ConnectionStatus::connecting;
  OpenCause opened = OpenCause::first;
  Duration age{};   // since its dial started
  Duration idle{};  // zero unless it is idle
  std::uint32_t uses = 0;
  std::uint32_t users = 0;  // current leases; more than one on a session
  LoopId home = 0;
  // Null while connecting. Valid only inside the visit, on any thread: read only immutable fields.
  const PooledConnection* pooled = nullptr;
};

class ConnectionVisitor {
 public:
  virtual void visit(const ConnectionView& connection) = 0;

 protected:
  ~ConnectionVisitor() = default;
};

}  // namespace carpool::pool
