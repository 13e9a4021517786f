// Destination: one origin's pool, its line of waiters, its limits and the dials in progress. Shared by all loops.
//
// While nobody waits, borrow and release touch no lock. The line is an intrusive FIFO under one mutex, taken only when
// someone waits or a connection opens or closes; nothing foreign is called under it.
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

// The right to make one connection: it counts against the cap from the moment it exists. Ends in dialed/dial_failed.
class [[nodiscard]] Reservation {
 public:
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation();  // must have been consumed: asserts
  std::uint32_t index() const { return index_; }
  std::uint32_t generation() const { return generation_; }
  OpenCause cause() const { return cause_; }
  // What to bring. any: whichever the other side prefers.
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

struct Waiting {};  // in line: on_lease or on_refused follows, unless cancel() comes first

class ConnectionBudget;
class ConnectionVisitor;
struct BorrowRecord;

class Destination {
 public:
  // `budget`: of all destinations together; null: no limit but the own one.
  Destination(Origin origin, const Limits& limits, Environment& environment, unsigned loops,
              ConnectionBudget* budget = nullptr);
  ~Destination();  // no lease is alive any more, no delivery in the mail

  const Origin& origin() const;
  const std::string& label() const;
  Limits limits() const;

  // A connection now, or a place in line, or a Fault (queue_full, budget, draining). On the calling loop.
  // want.tunnel takes one of max_tunnels places until the lease ends, so that a switch of protocols cannot fail later.
  std::variant<Lease, Waiting, Fault> borrow(Borrower& borrower, const BorrowRequest& want, Instant now);
  // The borrower no longer wants: it left, or its deadline came. A grant already in the mail passes on to the next.
  void cancel(Borrower& borrower, Instant now);

  // The end of a dial, on the loop that dialed and that watches `made` already under the reservation's index and
  // generation. `made` is closed if the destination stopped meanwhile.
  void dialed(Reservation reservation, std::unique_ptr<PooledConnection> made, Instant now);
  void dial_failed(Reservation reservation, Fault fault, Instant now);
  // Environment::recall ended it: no failure, it is closed as surplus.
  void given_up(Reservation reservation, Instant now);

  // A lease of exactly this connection if it still rests on the calling loop, for a health check; else an empty one
  // (also for a session, which looks after itself).
  Lease lease_idle(std::uint32_t index, std::uint32_t generation, Instant now);

  // ---- sessions (Protocol::h2), on their home loop; one that is gone meanwhile is ignored ----
  // SETTINGS changed: so many leases at once from now on. More: who waits is served. 0: nobody new.
  void set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, Instant now);
  // Its first response came, while its SETTINGS allowed `most`: from now on it is lent to so many, see
  // stream_limit_learner.h.
  void first_answer(std::uint32_t index, std::uint32_t generation, std::uint32_t most, Instant now);
  // GOAWAY, or it broke: nobody new gets it, who uses it goes on; it closes with the last one, or at once, with
  // `cause`. Environment::dispose follows by a delivery, never from inside.
  void retire(std::uint32_t index, std::uint32_t generation, CloseCause cause, Instant now);

  // Dials, for nobody yet, until `open` connections are open, `most` of them now; as far as the caps allow. How many
  // dials begin; each ends in dialed() or dial_failed() as any other.
  std::uint32_t warm_up(std::uint32_t open, std::uint32_t most, Instant now);

  // Ends idle connections that are expired or rested too long. Called now and then, from one loop.
  void sweep(Instant now);
  // An exchange failed on a connection that was up: counted with the failures.
  void note_failure(const Fault& fault);
  // A lease on `loop` is held for too long: counted with the leaks. On that loop.
  void note_leak(LoopId loop);
  // What rested longer would be retired: the learned limit with its margin; Duration::max() while nothing is known.
  Duration effective_limit() const;
  // A request that must not be repeated may find one that rested so long at most; Duration::max() while nothing is
  // known; BorrowRequest::kOnlyNew: the origin keeps nothing alive.
  Duration trust() const;
  // `Keep-Alive: timeout=` of a connection's first response; nothing: it had none.
  void hint_keep_alive(std::optional<Duration> timeout);
  // What the process before has learned of how long the origin lets a connection rest.
  void restore_idle_limit(Duration limit);
  // The last borrows that ended, of all loops, in no order.
  std::vector<BorrowRecord> history() const;
  // What Environment::wake_at asked for: dials again after a failure, if somebody still waits.
  void wake(Instant now);
  // No new borrows; idle connections close; waiters are refused (draining). Leases finish.
  void stop(Instant now);

  // ---- an operator's words, on any loop ----
  // New settings for what comes and for what is there: a smaller size closes idle surplus (config_changed), the rest as
  // it is given back, and nothing is dialed until use fell; a larger one serves the line.
  void set_limits(const Limits& limits, Instant now);
  // Nobody is lent anything and nothing is dialed; who borrows waits, within max_waiting and its deadline. Leases go
  // on, and what they give back rests.
  void pause(Instant now);
  // As pause, and connections close (drained): the idle ones now, the others when they are given back.
  void drain(Instant now);
  void resume(Instant now);
  // Every connection is replaced (reconnect): an idle one when its successor is there (the cap permitting), one in use
  // when it is given back; a session takes nobody new. Tunnels stay.
  void reconnect(Instant now);

  // Everything that /pools, /metrics and explain say of it; consistent: the ledger balances in each snapshot.
  struct Snapshot;  // pool/destination/snapshot.h
  Snapshot snapshot(Instant now) const;
  void visit(ConnectionVisitor& visitor, Instant now) const;

  // Nobody was lent anything for `unused`, and nothing is open, waits or is on its way: then it ends here, true, and
  // every borrow from now on is refused (draining), whereupon reclaimed() says: look for its successor. What rests in
  // one that is unused ends first (idle). touch(): somebody is about to use it.
  bool reclaim(Instant now, Duration unused);
  bool unused_for(Duration time, Instant now) const;
  bool reclaimed() const;
  void touch(Instant now);
  Instant last_use() const;  // the later of touch() and last_borrow()

  // For the total budget: when it was last borrowed from, whether something rests, and to close what rested longest.
  Instant last_borrow() const;
  // The last dial failed: who waits, waits for the probe that decides (pool/policy/circuit_breaker.h).
  bool probing() const;
  bool has_idle() const;
  bool evict(Instant now);
  // Recalls a dial that nobody here needs. True: its place may be free soon.
  bool cancel_one_dial(Instant now);
  // No slot of the budget is asked for in its name any more.
  void leave_budget();

  struct Impl;  // pool/destination/destination_impl.h

 private:
  friend class Lease;
  std::unique_ptr<Impl> impl_;
};

// ---- readiness of a pooled connection: what the event (index, generation) means here and now ----
// borrowed/connecting: it is this loop's and in use, hand the event to *pooled. inspecting: it was idle and this call
// won it (nobody can borrow it meanwhile): look at the wire, then end_inspection. session: this loop's, used or not;
// hand the event to *pooled, which says retire() when it is over. stale: drop the event.
struct EventClaim {
  enum class Kind : std::uint8_t { stale, in_use, inspecting, session } kind = Kind::stale;
  PooledConnection* pooled = nullptr;
  Destination* destination = nullptr;
};
EventClaim claim_event(std::uint32_t index, std::uint32_t generation, LoopId here);
// quiet: idle again and offered to the line. Otherwise it is closed with `cause`. On the loop that claimed it.
// in_order: its peer said FIN (or close_notify) and nothing else: how long it let the connection rest is learned.
void end_inspection(std::uint32_t index, bool quiet, CloseCause cause, Instant now, bool in_order = false);

}  // namespace carpool::pool
