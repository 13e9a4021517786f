// Borrowers who wait for a connection of one destination, first come first served, across loops.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_tree.h"
#include "base/result.h"
#include "pool/destination/environment.h"

namespace carpool::pool {

class Lease;

// What a borrower asks for.
struct BorrowRequest {
  // Refuse a connection that rested longer (requests that must not be replayed).
  Duration max_idle = Duration::max();
  // As max_idle: refuse every connection that has served, but for sessions.
  static constexpr Duration kOnlyNew{-1};
  // A replay: only a connection that never served, or a session that is newer than this wish or in use right now (what
  // it must not meet is one that went stale at rest). Head of the line.
  bool new_connection_only = false;
  bool tunnel = false;  // will keep its slot to the end (Upgrade, CONNECT)
  ProtocolMask kind = ProtocolMask::any;
  // In line: a class waits four times as long for its turn as the one above it (0: the highest), and inside a class
  // clients take turns, so that nobody starves. Limits::classes says how many there are.
  std::uint8_t priority_class = 0;
  std::uint64_t client = 0;  // 0: Borrower::client() is asked if it has to wait
};

// Who waits. Lives in memory that outlives any mail that names it (its loop's slab: never freed while loops run), so a
// grant that arrives late finds the borrower and sees by the ticket that it is no longer meant.
class Borrower : public TreeHook<struct WaitersTag, Duration>, public TreeHook<struct ClientsTag, NoSummary> {
 public:
  // On the borrower's own loop, never from inside borrow() or cancel().
  virtual void on_lease(Lease lease) = 0;
  virtual void on_refused(Fault fault) = 0;
  // Whose turn it is in line; equal for the wishes of one client. Asked on the own loop, only when it must wait.
  virtual std::uint64_t client() const { return 0; }

 protected:
  ~Borrower() = default;

 private:
  friend class Destination;
  friend class WaitQueue;
  friend struct TurnOrder;
  friend struct ClientOrder;
  friend class Rejection;
  // Written on the own loop: under the destination's mutex when it joins the line, without when it has left it.
  LoopId loop_ = 0;
  std::uint64_t virtual_finish_time_ = 0;  // its place in line; 0: not known yet. Guarded by the destination's mutex
  std::uint64_t ticket_ = 0;               // 0: not waiting; a grant must carry the same. Grows in the order of joining
  Instant since_{};
  BorrowRequest want_;
};

// Of this process; never repeats, so that a grant of one destination cannot be taken for another's.
std::uint64_t next_ticket();

}  // namespace carpool::pool
