// ConnectionBudget: the exact limit on the connections of all destinations together.
//
// A destination that finds the budget used up is starved. Starved destinations form a FIFO queue, those without any
// connection first: each free slot is granted to its head, and no other destination takes one meanwhile. Slots come
// from idle connections and unneeded dials of destinations that offer them (the least recently used of a few), and from
// connections about to be handed to the next waiter of their own destination: each serves there for a quantum, then
// claim_hand_off() takes it, unless the two destinations hold about the same number.
//
// Only release_for_starved() calls destinations, in a loop, without the mutex; they register facts here and never call
// back. The mutex is the innermost: it may be taken under a destination's.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/intrusive.h"
#include "pool/atomic.h"
#include "pool/core/audit_report.h"

namespace carpool::pool {

// A destination, as the budget sees it. Called on any loop's thread, never under a mutex of the pool.
class BudgetWaiter : public ListHook<struct StarvedTag>, public ListHook<struct OfferTag> {
 public:
  // Called when a slot was granted: uses it for a dial if one is still needed. The budget takes back an unused one.
  virtual void on_slot(Instant now) = 0;
  // Closes an idle connection, the least recently used one (or by `evict`) of some, or, if there is none, cancels an
  // unneeded dial. Returns false if there is neither.
  virtual bool give_slot(Instant now) = 0;
  virtual Instant last_use() const = 0;
  // The number of its connections and dials.
  virtual std::uint32_t slots() const = 0;

 protected:
  ~BudgetWaiter() = default;

 private:
  friend class ConnectionBudget;
  Atomic<std::uint32_t> granted_{0};  // slots counted for it and not used yet
  Atomic<std::uint32_t> offers_{0};   // 1: in the list of offers
  // Guarded by the budget's mutex.
  bool holds_nothing_ = false;  // which part of the queue it is in
};

// A destination's part of a recount.
struct BudgetShare {
  const BudgetWaiter* waiter = nullptr;
  std::uint64_t slots = 0;      // its connections and dials
  std::uint64_t announced = 0;  // those whose slot is freed soon
  bool has_idle = false;
  bool waits = false;  // it has waiters
};

class ConnectionBudget {
 public:
  // How long, or how often, a connection serves its own destination before a starved one may claim it.
  static constexpr Duration kQuantum = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kQuantumUses = 32;
  // After this many hand-offs the next one is claimed, however little the connection served.
  static constexpr std::uint32_t kMaxHandOffs = 64;
  // One eviction compares the last uses of at most this many destinations.
  static constexpr unsigned kCompared = 16;

  explicit ConnectionBudget(std::uint32_t cap) : cap_(cap) {}

  // Takes a slot for `waiter`: one that was granted to it, or a free one if no destination is starved.
  bool acquire(BudgetWaiter& waiter);
  // Returns a slot. The caller calls release_for_starved() when it holds no mutex.
  void put_back() { taken_.fetch_sub(1, std::memory_order_seq_cst); }

  // Notes that a connection closes or a dial is cancelled: its slot is freed soon, so no other one is freed for it.
  void note_pending_release() { pending_.fetch_add(1, std::memory_order_seq_cst); }
  // Called after put_back() if the slot was freed.
  void pending_release_ended() { pending_.fetch_sub(1, std::memory_order_seq_cst); }

  std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
  bool full() const { return taken_.load(std::memory_order_seq_cst) >= cap_ || has_starved(); }
  // seq_cst: pairs with register_starved(). A release publishes its slot or offer, then reads this; a starved
  // destination registers, then looks for slots and offers.
  bool has_starved() const { return starved_size_.load(std::memory_order_seq_cst) != 0; }

  // Enqueues `waiter`, which found no slot. Returns true if it was queued already. The caller then calls
  // release_for_starved().
  bool register_starved(BudgetWaiter& waiter) EXCLUDES(mutex_);
  bool is_starved(const BudgetWaiter& waiter) const EXCLUDES(mutex_);
  // Removes `waiter` from the queue, because it has no waiters any more.
  void forget_starved(BudgetWaiter& waiter) EXCLUDES(mutex_);
  // Lists `waiter`, which may have a slot to give. Cheap if it is listed already.
  void offer(BudgetWaiter& waiter) EXCLUDES(mutex_) {
    // seq_cst: pairs with withdraw(). The caller made a connection idle; now the mark is read.
    if (waiter.offers_.load(std::memory_order_seq_cst) == 0) list_offer(waiter);
  }
  // Returns true if the connection about to be handed on within `waiter` must be closed for a starved destination.
  bool claim_hand_off(const BudgetWaiter& waiter, std::uint32_t uses, Duration age) EXCLUDES(mutex_);
  // The same for a session, which closes when its last user leaves: at most one per quantum.
  bool claim_session(const BudgetWaiter& waiter, std::uint32_t uses, Duration age, Instant now) EXCLUDES(mutex_);

  // Grants free slots to the queue, and frees more as long as there are offers. The caller holds no
  // destination's mutex either.
  void release_for_starved(Instant now) EXCLUDES(mutex_);
  // Frees one offered slot because the system, not the budget, is short of a resource. Returns false if there is no
  // offer. The caller holds no destination's mutex either.
  bool free_one(Instant now) EXCLUDES(mutex_);
  // Returns the number of destinations in the queue.
  std::uint32_t starved() const { return starved_size_.load(std::memory_order_relaxed); }
  // Removes a destination that ends.
  void forget(BudgetWaiter& waiter) EXCLUDES(mutex_);

  // Recounts. No call into the pool may be in progress on any thread. `shares`: those of all destinations.
  void audit(const std::vector<BudgetShare>& shares, AuditReport& report) const EXCLUDES(mutex_);

 private:
  bool count_one();
  static bool use_granted(BudgetWaiter& waiter);
  void return_unused(BudgetWaiter& waiter);
  BudgetWaiter* grant_slot() EXCLUDES(mutex_);
  bool free_a_slot(Instant now) EXCLUDES(mutex_);
  bool covered() const REQUIRES(mutex_);
  void list_offer(BudgetWaiter& waiter) EXCLUDES(mutex_);
  BudgetWaiter* next_offer() EXCLUDES(mutex_);
  BudgetWaiter* next_offer_or_stop() EXCLUDES(mutex_);
  BudgetWaiter& offered() REQUIRES(mutex_);
  bool withdraw(BudgetWaiter& waiter, Instant now) EXCLUDES(mutex_);
  void leave_queue(BudgetWaiter& waiter) REQUIRES(mutex_);
  BudgetWaiter* head() REQUIRES(mutex_);
  bool may_claim(std::uint32_t uses, Duration age);
  bool gains_from(const BudgetWaiter& waiter) REQUIRES(mutex_);

  const std::uint32_t cap_;
  Atomic<std::uint32_t> taken_{0};
  Atomic<std::uint32_t> starved_size_{0};
  Atomic<std::uint32_t> pending_{0};
  std::atomic<std::uint32_t> hand_offs_{0};  // since the last grant or claim; relaxed: a count that paces claims
  mutable Mutex mutex_;
  // the queue
  List<BudgetWaiter, StarvedTag> holding_nothing_ GUARDED_BY(mutex_), holding_some_ GUARDED_BY(mutex_);
  List<BudgetWaiter, OfferTag> offers_ GUARDED_BY(mutex_);
  std::uint32_t freeing_ GUARDED_BY(mutex_) = 0;  // number of threads that are freeing a slot
  Instant session_claim_at_ GUARDED_BY(mutex_){};
};

}  // namespace carpool::pool
