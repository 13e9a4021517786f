#include "pool/queue/connection_budget.h"

namespace carpool::pool {

bool ConnectionBudget::acquire(BudgetWaiter& waiter) {
  if (use_granted(waiter)) return true;
  return !has_starved() && count_one();
}

bool ConnectionBudget::count_one() {
  // seq_cst on each read: pairs with put_back(): a destination that registers, then fails here, is seen by the next
  // release. An old number would refuse a slot that is free.
  std::uint32_t now = taken_.load(std::memory_order_seq_cst);
  do {
    if (now >= cap_) return false;
  } while (!taken_.compare_exchange_weak(now, now + 1, std::memory_order_seq_cst, std::memory_order_seq_cst));
  return true;
}

bool ConnectionBudget::use_granted(BudgetWaiter& waiter) {
  // relaxed: a count; the mutex of the dialing destination orders the rest.
  std::uint32_t left = waiter.granted_.load(std::memory_order_relaxed);
  do {
    if (left == 0) return false;
  } while (
      !waiter.granted_.compare_exchange_weak(left, left - 1, std::memory_order_seq_cst, std::memory_order_relaxed));
  return true;
}

// ---- the queue ----

bool ConnectionBudget::register_starved(BudgetWaiter& waiter) {
  const Held lock(mutex_);
  const bool nothing = waiter.slots() == 0;
  const bool queued = static_cast<ListHook<StarvedTag>&>(waiter).linked();
  if (queued) {
    if (!nothing || waiter.holds_nothing_) return true;
    leave_queue(waiter);  // it lost its last connection while it waited for more
  }
  waiter.holds_nothing_ = nothing;
  (nothing ? holding_nothing_ : holding_some_).push_back(waiter);
  starved_size_.fetch_add(1, std::memory_order_seq_cst);
  return queued;
}

bool ConnectionBudget::is_starved(const BudgetWaiter& waiter) const {
  if (starved() == 0) return false;
  const Held lock(mutex_);
  return static_cast<const ListHook<StarvedTag>&>(waiter).linked();
}

BudgetWaiter* ConnectionBudget::head() {
  if (!holding_nothing_.empty()) return &holding_nothing_.front();
  return holding_some_.empty() ? nullptr : &holding_some_.front();
}

void ConnectionBudget::leave_queue(BudgetWaiter& waiter) {
  static_cast<ListHook<StarvedTag>&>(waiter).unlink();
  starved_size_.fetch_sub(1, std::memory_order_seq_cst);
}

void ConnectionBudget::forget_starved(BudgetWaiter& waiter) {
  if (!has_starved()) return;
  const Held lock(mutex_);
  if (static_cast<ListHook<StarvedTag>&>(waiter).linked()) leave_queue(waiter);
}

void ConnectionBudget::forget(BudgetWaiter& waiter) {
  const Held lock(mutex_);
  if (static_cast<ListHook<StarvedTag>&>(waiter).linked()) leave_queue(waiter);
  static_cast<ListHook<OfferTag>&>(waiter).unlink();
  waiter.offers_.store(0, std::memory_order_seq_cst);
}

// Grants a free slot to the head of the queue. Returns null if no slot is free or the queue is empty.
BudgetWaiter* ConnectionBudget::grant_slot() {
  const Held lock(mutex_);
  BudgetWaiter* next = head();
  if (next == nullptr || !count_one()) return nullptr;
  next->granted_.fetch_add(1, std::memory_order_seq_cst);
  leave_queue(*next);
  hand_offs_.store(0, std::memory_order_relaxed);
  return next;
}

// Takes back a slot that the destination no longer needs. Called after each grant.
void ConnectionBudget::return_unused(BudgetWaiter& waiter) {
  if (use_granted(waiter)) put_back();
}

void ConnectionBudget::release_for_starved(Instant now) {
  while (has_starved()) {
    if (BudgetWaiter* next = grant_slot()) {
      next->on_slot(now);
      return_unused(*next);
    } else if (!free_a_slot(now)) {
      return;
    }
  }
}

// ---- where slots come from ----

// Returns true if as many slots are being freed as destinations are starved.
bool ConnectionBudget::covered() const {
  const std::uint32_t coming = pending_.load(std::memory_order_seq_cst) + freeing_;
  return starved_size_.load(std::memory_order_seq_cst) <= coming;
}

// Returns true if a slot is free or will be soon; false if there is no offer, or if other threads are freeing enough:
// they continue with the queue.
bool ConnectionBudget::free_a_slot(Instant now) {
  {
    const Held lock(mutex_);
    if (covered()) return false;
    // A slot that was freed since the last check, and is no longer counted as coming.
    if (taken_.load(std::memory_order_seq_cst) < cap_) return true;
    ++freeing_;
  }
  while (BudgetWaiter* donor = next_offer_or_stop()) {
    if (!donor->give_slot(now) && !withdraw(*donor, now)) continue;
    const Held lock(mutex_);
    --freeing_;
    return true;
  }
  return false;
}

bool ConnectionBudget::free_one(Instant now) {
  bool freed = false;
  while (!freed) {
    BudgetWaiter* donor = next_offer();
    if (donor == nullptr) break;
    freed = donor->give_slot(now) || withdraw(*donor, now);
  }
  // A thread that was freeing a slot may have missed an offer that was withdrawn for a moment.
  release_for_starved(now);
  return freed;
}

void ConnectionBudget::list_offer(BudgetWaiter& waiter) {
  const Held lock(mutex_);
  waiter.offers_.store(1, std::memory_order_seq_cst);
  if (static_cast<ListHook<OfferTag>&>(waiter).linked()) return;
  offers_.push_back(waiter);
}

// Returns the next destination to try, or null if there is no offer.
BudgetWaiter* ConnectionBudget::next_offer() {
  const Held lock(mutex_);
  return offers_.empty() ? nullptr : &offered();
}

// As next_offer(); null also means that the caller is no longer counted as freeing, both in one step, so that a later
// offer finds either this thread at work or none.
BudgetWaiter* ConnectionBudget::next_offer_or_stop() {
  const Held lock(mutex_);
  if (!offers_.empty()) return &offered();
  --freeing_;
  return nullptr;
}

// Returns the least recently used of the next destinations, and moves them to the end of the list.
BudgetWaiter& ConnectionBudget::offered() {
  BudgetWaiter* const first = &offers_.front();
  BudgetWaiter* oldest = first;
  Instant used_last = first->last_use();
  for (unsigned compared = 1;; ++compared) {
    offers_.push_back(offers_.pop_front());
    BudgetWaiter& next = offers_.front();
    if (&next == first || compared == kCompared) return *oldest;
    const Instant used = next.last_use();
    if (used >= used_last) continue;
    used_last = used;
    oldest = &next;
  }
}

// Removes the offer of `waiter`, which had no slot to give. Returns true if it has one after all; it is listed again.
bool ConnectionBudget::withdraw(BudgetWaiter& waiter, Instant now) {
  {
    const Held lock(mutex_);
    static_cast<ListHook<OfferTag>&>(waiter).unlink();
    waiter.offers_.exchange(0, std::memory_order_seq_cst);
  }
  // Pairs with offer(): a connection that became idle before this found the mark set and did not list it.
  if (!waiter.give_slot(now)) return false;
  list_offer(waiter);
  return true;
}

// ---- claims ----

bool ConnectionBudget::may_claim(std::uint32_t uses, Duration age) {
  const std::uint32_t hand_offs = hand_offs_.fetch_add(1, std::memory_order_relaxed) + 1;
  return uses >= kQuantumUses || age >= kQuantum || hand_offs >= kMaxHandOffs;
}

// Returns true if the head of the queue needs a slot of `waiter` more than `waiter` does. Otherwise the head's turn
// passes to the next one; without that, two starved destinations would exchange slots forever.
bool ConnectionBudget::gains_from(const BudgetWaiter& waiter) {
  BudgetWaiter* next = head();
  if (next == nullptr || covered()) return false;
  const std::uint32_t held = next->slots();
  if (next != &waiter && (held == 0 || waiter.slots() > held + 1)) return true;
  if (!next->holds_nothing_) holding_some_.push_back(holding_some_.pop_front());
  return false;
}

bool ConnectionBudget::claim_hand_off(const BudgetWaiter& waiter, std::uint32_t uses, Duration age) {
  if (!has_starved() || !may_claim(uses, age)) return false;
  const Held lock(mutex_);
  if (!gains_from(waiter)) return false;
  hand_offs_.store(0, std::memory_order_relaxed);
  return true;
}

bool ConnectionBudget::claim_session(const BudgetWaiter& waiter, std::uint32_t uses, Duration age, Instant now) {
  if (!has_starved() || !may_claim(uses, age)) return false;
  const Held lock(mutex_);
  if (now < session_claim_at_ || !gains_from(waiter)) return false;
  session_claim_at_ = now + kQuantum;
  hand_offs_.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace carpool::pool
