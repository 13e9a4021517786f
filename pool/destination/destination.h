// Destination: one origin's pool, wait queue, limits and dials in progress. Shared by all loops.
//
// While no borrower waits, borrow and release take no lock. The wait queue is intrusive and guarded by one mutex, which
// is taken only when a borrower waits or a connection opens or closes; no other component is called under it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "pool/destination/environment.h"
#include "pool/destination/lease.h"
#include "pool/origin.h"
#include "pool/policy/limits.h"
#include "pool/queue/borrower.h"

namespace carpool::pool {

// The right to make one connection, counted against the cap. Must end in dialed(), dial_failed() or given_up().
class [[nodiscard]] Reservation {
 public:
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation();  // asserts that it was consumed
  std::uint32_t index() const { return index_; }
  std::uint32_t generation() const { return generation_; }
  OpenCause cause() const { return cause_; }
  // The protocols that the dial may result in; any: whichever the origin prefers.
  ProtocolMask kind() const { return kind_; }

 private:
  friend class Destination;
  Reservation(std::uint32_t index, std::uint32_t generation, OpenCause cause, ProtocolMask kind)
      : index_(index), generation_(generation), cause_(cause), kind_(kind) {}
  std::uint32_t index_ = 0;
  std::uint32_t generation_ = 0;
  OpenCause cause_;
  ProtocolMask kind_;
  bool live_ = true;
};

// Pause: an operator's command to stop lending, until resume() or until its end.
struct Pause {
  Instant since{};
  Instant until = kNever;  // then it ends by itself; kNever: only resume() ends it
  bool drains = false;     // connections close too
};
// The detail of the Fault of a request that got no connection for this reason.
inline constexpr const char* kPausedByOperator = "paused by an operator";
// Likewise, for a pause that the origin requested.
inline constexpr const char* kCoolingDown = "the origin asked for a pause (Retry-After)";
// Likewise, from a pool with Limits::replaced. The caller asks the pool that took the origin.
inline constexpr const char* kReplacedPool = "another pool has taken the origin";

// Why warm_up() starts no dial.
enum class WarmUpEnd : std::uint8_t {
  complete,  // the connections exist or are being dialed, or as many as the size of the pool allows
  paused,    // by an operator
  stopped,
  no_slot,  // the connections of all destinations together have reached their limit, or memory is exhausted
};

struct Waiting {};  // enqueued: on_lease or on_refused follows, unless cancel() is called first

class AuditReport;
class ConnectionBudget;
class ConnectionVisitor;
class Endpoints;
struct BorrowRecord;
struct BudgetShare;
struct Outstanding;

class Destination {
 public:
  // `budget` is shared by all destinations; null: limited by its own cap only. `now`: the start of Snapshot::age.
  Destination(Origin origin, const Limits& limits, Environment& environment, unsigned loops,
              ConnectionBudget* budget = nullptr, std::optional<Instant> now = std::nullopt);
  ~Destination();  // no lease may be alive and no delivery in flight

  const Origin& origin() const;
  const std::string& label() const;
  Limits limits() const;

  // Returns a lease, Waiting, or a Fault (queue_full, budget, draining). Called on the borrower's loop. want.tunnel
  // takes one of max_tunnels places until the lease ends, so that a protocol switch cannot fail later.
  std::variant<Lease, Waiting, Fault> borrow(Borrower& borrower, const BorrowRequest& want, Instant now);
  // Cancels a borrower that left or whose deadline passed. A grant in flight goes to the next borrower.
  void cancel(Borrower& borrower, Instant now);

  // Called by the loop that dialed, which already watches `made` under the reservation's index and generation. `made`
  // is closed if the destination stopped meanwhile.
  void dialed(Reservation reservation, std::unique_ptr<PooledConnection> made, Instant now);
  void dial_failed(Reservation reservation, Fault fault, Instant now);
  // Called after Environment::cancel_dial ended the dial. It is closed as surplus and is not a failure.
  void given_up(Reservation reservation, Instant now);

  // Leases exactly this connection for a health check if it is still idle on the calling loop; otherwise, for a
  // session, or during a pause that the origin requested, returns an empty lease. Not a borrow: neither counted nor
  // recorded, and no use of the destination.
  Lease lease_idle(std::uint32_t index, std::uint32_t generation, Instant now);

  // ---- sessions (Protocol::h2), called on their home loop; a session that is gone is ignored ----
  // Allows `most` leases after a change of SETTINGS. A higher limit serves waiters; 0 admits no new borrower.
  void set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, Instant now);
  // Reports the first response, while SETTINGS allow `most` streams: from now on the session gives that many leases,
  // see stream_limit_learner.h.
  void first_response(std::uint32_t index, std::uint32_t generation, std::uint32_t most, Instant now);
  // Admits no new borrower after GOAWAY or a failure; current ones continue. The session closes with the last one, or
  // at once, with `cause`. Environment::dispose follows by a delivery, never from inside.
  void retire(std::uint32_t index, std::uint32_t generation, CloseCause cause, Instant now);

  // Dials without waiters until `open` connections exist, at most `most` now, within the caps. Returns the number of
  // dials started; each ends in dialed(), dial_failed() or given_up(). `end`: if it is 0, the reason.
  std::uint32_t warm_up(std::uint32_t open, std::uint32_t most, Instant now, WarmUpEnd* end = nullptr);

  // Closes idle connections that are expired or idle for too long. Called periodically, from one loop.
  void sweep(Instant now);
  // Counts a failed exchange on an established connection.
  void note_failure(const Fault& fault);
  // Counts a lease on `loop` that is held for too long. Must be called on that loop.
  void note_leak(LoopId loop);
  // Returns the idle time after which a connection is retired: the learned limit less its margin; max(): unknown.
  Duration effective_limit() const;
  // Returns the longest idle time acceptable for a non-idempotent request; Duration::max(): unknown;
  // BorrowRequest::kOnlyNew: the origin keeps nothing alive.
  Duration trust() const;
  // Reports `Keep-Alive: timeout=` of a connection's first response; nullopt: the response had none.
  void hint_keep_alive(std::optional<Duration> timeout);
  // Returns the addresses of the origin. Their owner keeps them up to date.
  Endpoints& endpoints();
  // Restores the idle limit that the previous process learned.
  void restore_idle_limit(Duration limit);
  // Restores an automatic size likewise, within the configured bounds.
  void restore_size(std::uint32_t size);
  // Returns the last completed borrows of all loops, unordered.
  std::vector<BorrowRecord> history() const;
  // Serves a wake-up requested by Environment::wake_at: dials again if a borrower still waits.
  void wake(Instant now);
  // Refuses new borrows and waiters (draining) and closes idle connections. Leases continue to their end.
  void stop(Instant now);

  // ---- operator commands, on any loop ----
  // Applies new settings: a smaller size closes idle surplus (config_changed), the rest on release, and nothing is
  // dialed until use has fallen; a larger one serves waiters.
  void set_limits(const Limits& limits, Instant now);
  // Ends Limits::replaced before the next set_limits(), because the origin has this pool again. Any thread.
  void use_again();
  // Stops lending and dialing; borrowers wait, within max_waiting and their deadlines. Leases continue; released
  // connections stay idle. sweep() ends the pause at `until`.
  void pause(Instant now, Instant until = kNever);
  // As pause(), and connections close (drained): idle ones now, the others on release.
  void drain(Instant now, Instant until = kNever);
  void resume(Instant now);
  bool paused() const;
  // Pauses as pause() does for at most Limits::max_cool_down, after a response with `status` and Retry-After. Then one
  // lease precedes the others; its pass_trial() or another cool_down() decides. resume() ends the pause. Returns true
  // if the pause begins or is renewed; false if it is only extended, or the limit is zero.
  bool cool_down(Duration wait, std::uint16_t status, Instant now);
  // Returns the remaining time of that pause: zero while a trial is in progress, nullopt if there is none.
  std::optional<Duration> cooling(Instant now) const;
  // Takes over a pause of the previous process. Nothing may be open yet.
  void restore_pause(const Pause& pause);
  // Takes over the pauses, the operator's and the origin's, of the pool that this one replaces. set_limits() must
  // follow: it serves the waiters and requests the wake-up.
  void take_over_pauses(const Destination& predecessor);
  // Replaces every connection (reconnect): an idle one when its successor is open (the cap permitting), one in use on
  // release; a session admits no new borrower. Tunnels are kept.
  void reconnect(Instant now);

  // Returns the data of /pools, /metrics and explain; consistent: opened and closed balance in each snapshot.
  struct Snapshot;  // pool/destination/snapshot.h
  Snapshot snapshot(Instant now) const;
  void visit(ConnectionVisitor& visitor, Instant now) const;

  // Recounts every number that is kept by hand. No call into the destination may be in progress on any thread.
  // `outstanding`: the counts that only the owners of leases and messages know; null: unknown.
  AuditReport audit(const Outstanding* outstanding = nullptr) const;
  BudgetShare budget_share() const;  // its part of ConnectionBudget::audit()

  // Ends the destination if it lent nothing for `unused` and nothing is open, waiting or in progress; idle connections
  // are closed first (idle). Returns true then: later borrows are refused (draining), and reclaimed() makes the caller
  // look up the successor. touch() announces a use.
  bool reclaim(Instant now, Duration unused);
  bool unused_for(Duration time, Instant now) const;
  bool reclaimed() const;
  void touch(Instant now);
  Instant last_use() const;  // the later of touch() and last_borrow()

  // Returns true if the last dial failed: waiters then wait for the result of a probe (pool/policy/circuit_breaker.h).
  bool probing() const;
  // Returns true if only a dial in progress can serve this waiter, because no open connection will be released to it;
  // and while its lease or its refusal is on the way. Must be called on the waiter's loop.
  bool awaits_dial(const Borrower& waiter) const;

  Instant last_borrow() const;  // Instant{}: there was none

  bool has_idle() const;
  // Closes an idle connection, the least recently used one (or by Limits::evict) of some. Returns false if there is
  // none.
  bool evict(Instant now);
  // Withdraws this destination's request for a slot of the budget.
  void leave_budget();

  struct Impl;  // pool/destination/destination_impl.h

 private:
  friend class Lease;
  std::unique_ptr<Impl> impl_;
};

// EventClaim: the meaning of a readiness event (index, generation) on this loop now.
struct EventClaim {
  enum class Kind : std::uint8_t {
    stale,       // drop the event
    in_use,      // in use on this loop: pass the event to *pooled
    inspecting,  // was idle, and this call reserved it: check the socket, then keep or close it
    session,     // lives on this loop: pass the event to *pooled, which calls retire() when it ends
  } kind = Kind::stale;
  PooledConnection* pooled = nullptr;
  Destination* destination = nullptr;
};
EventClaim claim_event(std::uint32_t index, std::uint32_t generation, LoopId here);
// OriginClose: how an origin closed an idle connection. `in_order`: it sent only FIN (or close_notify).
enum class OriginClose : std::uint8_t { in_order, abrupt };
// End an inspection; must be called on the loop that claimed it. keep_inspected(): the connection stays idle and is
// offered to waiters. close_inspected(): it is closed with `cause`; from peer_closed the idle limit is learned.
void keep_inspected(std::uint32_t index, Instant now);
void close_inspected(std::uint32_t index, CloseCause cause, Instant now, OriginClose how = OriginClose::abrupt);

}  // namespace carpool::pool
