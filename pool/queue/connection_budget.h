// ConnectionBudget: the number of connections that all destinations may have together, counted exactly.
//
// A destination that finds the budget used up is starved. Starved destinations form a FIFO queue, those that hold no
// connection before the others: each free slot is granted to its head, and no other destination takes one meanwhile.
// Slots come from idle connections and unneeded dials of the destinations that offer them (a clock hand goes over
// these), and from connections that their destination would hand on to its own next waiter: each serves there for a
// quantum, then claim_hand_off() takes it, as long as the two destinations do not hold about the same number.
//
// Only release_for_starved() calls destinations, in a loop, without the mutex: what they do registers facts here and
// never calls back. The mutex is the innermost: it may be taken under a destination's.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "base/intrusive.h"
#include "pool/core/atomic.h"

namespace carpool::pool {

// A destination, as the budget sees it. Each call may be made on any loop's thread, never under a mutex of the pool.
class BudgetWaiter : public ListHook<struct StarvedTag>, public ListHook<struct OfferTag> {
 public:
  // A slot was granted: takes it for a dial if it still needs one. The budget takes back what is left.
  virtual void on_slot(Instant now) = 0;
  // Closes the least recently used idle connection or, if there is none, cancels a dial that nobody needs. Returns
  // false if there is neither.
  virtual bool give_slot(Instant now) = 0;
  virtual Instant last_use() const = 0;
  // Connections and dials that it holds.
  virtual std::uint32_t slots() const = 0;

 protected:
  ~BudgetWaiter() = default;

 private:
  friend class ConnectionBudget;
  Atomic<std::uint32_t> granted_{0};  // slots that are counted for it and not used yet
  Atomic<std::uint32_t> offers_{0};   // 1: it is in the list of offers
  // Guarded by the budget's mutex.
  Instant looked_at_{};         // its last use when the clock hand passed it
  bool holds_nothing_ = false;  // in which part of the queue it is
};

class ConnectionBudget {
 public:
  // How long, or how often, a connection serves its own destination before a starved one may claim it.
  static constexpr Duration kQuantum = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kQuantumUses = 32;
  // After so many hand-offs the next one is claimed, whatever the connection served.
  static constexpr std::uint32_t kMostHandOffs = 64;
  // So many destinations that were used since the clock hand passed them are spared by one eviction.
  static constexpr unsigned kSecondChances = 16;

  explicit ConnectionBudget(std::uint32_t cap) : cap_(cap) {}

  // A slot for `who`: one that was granted to it, else a free one if nobody is starved.
  bool take(BudgetWaiter& who);
  // Returns a slot. The caller calls release_for_starved() when it holds no mutex.
  void put_back() { taken_.fetch_sub(1, std::memory_order_seq_cst); }

  // A connection is closing, or a dial is being cancelled: its slot comes back soon, and no other one is freed for it.
  void note_pending_release() { pending_.fetch_add(1, std::memory_order_seq_cst); }
  void pending_release_ended() { pending_.fetch_sub(1, std::memory_order_seq_cst); }  // then put_back() if it did come

  std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
  bool full() const { return taken_.load(std::memory_order_seq_cst) >= cap_ || anyone_starved(); }
  // seq_cst: pairs with register_starved(). A release publishes its slot or offer, then reads this; a starved
  // destination registers, then looks for slots and offers.
  bool anyone_starved() const { return starved_size_.load(std::memory_order_seq_cst) != 0; }

  // `who` found no slot: it joins the end of its part of the queue, unless it is there. Then the caller calls
  // release_for_starved().
  void register_starved(BudgetWaiter& who);
  // Nobody waits at `who` any more.
  void forget_starved(BudgetWaiter& who);
  // `who` may have something to give. Cheap if it is listed already.
  void offer(BudgetWaiter& who) {
    // seq_cst: pairs with withdraw(). The caller made a connection idle, now the mark is read.
    if (who.offers_.load(std::memory_order_seq_cst) == 0) list_offer(who);
  }
  // Must the connection that is about to be handed on within `who` be closed for a starved destination?
  bool claim_hand_off(const BudgetWaiter& who, std::uint32_t uses, Duration age);
  // The same for a session, which closes when its last user leaves: at most one in a quantum.
  bool claim_session(const BudgetWaiter& who, std::uint32_t uses, Duration age, Instant now);

  // Grants free slots to the queue, and frees more as long as anyone offers something. Called without any mutex.
  void release_for_starved(Instant now);
  // Not the total is short but the system: one of those that offer something gives it, as if somebody was starved.
  // False: nobody offers anything. Called without any mutex.
  bool free_one(Instant now);
  // Destinations in the queue.
  std::uint32_t starved() const { return starved_size_.load(std::memory_order_relaxed); }
  // The destination ends.
  void forget(BudgetWaiter& who);

 private:
  bool count_one();
  static bool use_granted(BudgetWaiter& who);
  void return_unused(BudgetWaiter& who);
  BudgetWaiter* grant_slot();
  bool free_a_slot(Instant now);
  bool covered() const;
  void list_offer(BudgetWaiter& who);
  BudgetWaiter* next_offer();
  BudgetWaiter* next_offer_or_stop();
  BudgetWaiter& offered();
  bool withdraw(BudgetWaiter& who, Instant now);
  void leave_queue(BudgetWaiter& who);
  BudgetWaiter* head();
  bool may_claim(std::uint32_t uses, Duration age);
  bool gains_from(const BudgetWaiter& who);

  const std::uint32_t cap_;
  Atomic<std::uint32_t> taken_{0};
  Atomic<std::uint32_t> starved_size_{0};
  Atomic<std::uint32_t> pending_{0};
  std::atomic<std::uint32_t> hand_offs_{0};  // since the last grant or claim; relaxed: a count that paces claims
  Mutex mutex_;                              // guards all below
  List<BudgetWaiter, StarvedTag> holding_nothing_, holding_some_;  // the queue
  List<BudgetWaiter, OfferTag> offers_;
  std::uint32_t freeing_ = 0;  // threads that are freeing a slot
  Instant session_claim_at_{};
};

}  // namespace carpool::pool
