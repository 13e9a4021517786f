// Borrower, BorrowRequest: a waiter for a connection of one destination, and what it accepts.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_tree.h"
#include "base/loop_id.h"
#include "base/result.h"
#include "pool/policy/protocol.h"

namespace carpool::pool {

class Lease;

// The connection that a borrower needs.
struct BorrowRequest {
  // Rejects an exclusive connection that was idle for longer (non-idempotent requests). A session verifies its peer
  // itself: see PooledConnection.
  Duration max_idle = Duration::max();
  // A value of max_idle: rejects every exclusive connection that has served.
  static constexpr Duration kOnlyNew{-1};
  // A retry: accepts only a connection that has never served, or a session newer than this request or in use (one that
  // was idle may have gone stale). Served before all others.
  bool new_connection_only = false;
  // A retry: the entry of its last attempt (Lease::index()). A session of this entry may refuse the request again, so
  // it serves it only if no other one can be dialed.
  static constexpr std::uint32_t kNoEntry = UINT32_MAX;
  std::uint32_t tried = kNoEntry;
  bool tunnel = false;  // keeps its slot until it ends (Upgrade, CONNECT)
  ProtocolMask kind = ProtocolMask::any;
  // The priority class: a class waits four times as long for its turn as the next higher one (0: the highest); within a
  // class clients take turns, so none starves. Limits::classes is the number of classes.
  std::uint8_t priority_class = 0;
  std::uint64_t client = 0;  // 0: Borrower::client() is called if it has to wait
  // Equal for requests that follow each other on one client connection: the simulation of another size replays them as
  // one sequence (pool/directory/replay_plan.h). The pool makes no decision by it. 0: unknown.
  std::uint16_t caller = 0;
};

// A waiter. Its memory outlives any delivery that names it (it is in its loop's slab, never freed while loops run); the
// ticket of a late grant shows that the borrower is no longer current.
class Borrower : public TreeHook<struct WaitersTag, Duration>, public TreeHook<struct ClientsTag, NoSummary> {
 public:
  // Called on the borrower's own loop, never from inside borrow() or cancel().
  virtual void on_lease(Lease lease) = 0;
  virtual void on_refused(Fault fault) = 0;
  // Returns the client for fair queueing; equal for all requests of one client. Called on the own loop if it must wait.
  virtual std::uint64_t client() const { return 0; }

 protected:
  ~Borrower() = default;

 private:
  friend class Destination;
  friend class WaitQueue;
  friend struct TurnOrder;
  friend struct ClientOrder;
  friend class Rejection;
  // Written on the own loop: under the destination's mutex when it is enqueued, without it after it was removed.
  LoopId loop_ = 0;
  std::uint64_t virtual_finish_time_ = 0;  // its position; 0: not known yet. Guarded by the destination's mutex
  bool awaits_place_ = false;              // it waits for a place of max_tunnels. Guarded likewise
  std::uint64_t ticket_ = 0;  // 0: not waiting; a grant must carry the same. Increases in order of enqueueing
  Instant asked_{};           // time of borrow()
  Instant since_{};           // time when it joined its queue: of max_tunnels, or for a connection. Guarded likewise
  BorrowRequest want_;
};

// Returns a process-wide number that never repeats, so that a grant of one destination cannot be mistaken for
// another's.
std::uint64_t next_ticket();

}  // namespace carpool::pool
