#include "pool/queue/connection_budget.h"

namespace carpool::pool {

bool ConnectionBudget::take(BudgetWaiter& who) {
  if (use_granted(who)) return true;
  return !anyone_starved() && count_one();
}

bool ConnectionBudget::count_one() {
  std::uint32_t now = taken_.load(std::memory_order_relaxed);
  do {
    if (now >= cap_) return false;
    // seq_cst: the partner of put_back(): a destination that registers, then fails here, is seen by the next release.
  } while (!taken_.compare_exchange_weak(now, now + 1, std::memory_order_seq_cst, std::memory_order_relaxed));
  return true;
}

bool ConnectionBudget::use_granted(BudgetWaiter& who) {
  // relaxed: a number; the mutex of whoever dials orders the rest.
  std::uint32_t left = who.granted_.load(std::memory_order_relaxed);
  do {
    if (left == 0) return false;
  } while (!who.granted_.compare_exchange_weak(left, left - 1, std::memory_order_seq_cst, std::memory_order_relaxed));
  return true;
}

// ---- the queue ----

void ConnectionBudget::register_starved(BudgetWaiter& who) {
  const std::scoped_lock lock(mutex_);
  const bool nothing = who.slots() == 0;
  if (static_cast<ListHook<StarvedTag>&>(who).linked()) {
    if (!nothing || who.holds_nothing_) return;
    leave_queue(who);  // it lost its last connection while it waited for more
  }
  who.holds_nothing_ = nothing;
  (nothing ? holding_nothing_ : holding_some_).push_back(who);
  starved_size_.fetch_add(1, std::memory_order_seq_cst);
}

// Under the mutex.
BudgetWaiter* ConnectionBudget::head() {
  if (!holding_nothing_.empty()) return &holding_nothing_.front();
  return holding_some_.empty() ? nullptr : &holding_some_.front();
}

void ConnectionBudget::leave_queue(BudgetWaiter& who) {
  static_cast<ListHook<StarvedTag>&>(who).unlink();
  starved_size_.fetch_sub(1, std::memory_order_seq_cst);
}

void ConnectionBudget::forget_starved(BudgetWaiter& who) {
  if (!anyone_starved()) return;
  const std::scoped_lock lock(mutex_);
  if (static_cast<ListHook<StarvedTag>&>(who).linked()) leave_queue(who);
}

void ConnectionBudget::forget(BudgetWaiter& who) {
  const std::scoped_lock lock(mutex_);
  if (static_cast<ListHook<StarvedTag>&>(who).linked()) leave_queue(who);
  static_cast<ListHook<OfferTag>&>(who).unlink();
  who.offers_.store(0, std::memory_order_seq_cst);
}

// The head of the queue, to which a free slot now belongs; null: no slot is free, or nobody is starved.
BudgetWaiter* ConnectionBudget::grant_slot() {
  const std::scoped_lock lock(mutex_);
  BudgetWaiter* next = head();
  if (next == nullptr || !count_one()) return nullptr;
  next->granted_.fetch_add(1, std::memory_order_seq_cst);
  leave_queue(*next);
  hand_offs_.store(0, std::memory_order_relaxed);
  return next;
}

// A destination that no longer needs its slot does not consume it. Each grant is followed by one of these.
void ConnectionBudget::return_unused(BudgetWaiter& who) {
  if (use_granted(who)) put_back();
}

void ConnectionBudget::release_for_starved(Instant now) {
  while (anyone_starved()) {
    if (BudgetWaiter* next = grant_slot()) {
      next->on_slot(now);
      return_unused(*next);
    } else if (!free_a_slot(now)) {
      return;
    }
  }
}

// ---- where slots come from ----

// Under the mutex: as many slots are on their way as destinations are starved.
bool ConnectionBudget::covered() const {
  const std::uint32_t coming = pending_.load(std::memory_order_seq_cst) + freeing_;
  return starved_size_.load(std::memory_order_seq_cst) <= coming;
}

// True: a slot is free or will be soon. False: nobody has one to give, or others are freeing enough; they go on with
// the queue when they are done.
bool ConnectionBudget::free_a_slot(Instant now) {
  {
    const std::scoped_lock lock(mutex_);
    if (covered()) return false;
    ++freeing_;
  }
  while (BudgetWaiter* giver = next_offer_or_stop()) {
    if (!giver->give_slot(now) && !withdraw(*giver, now)) continue;
    const std::scoped_lock lock(mutex_);
    --freeing_;
    return true;
  }
  return false;
}

bool ConnectionBudget::free_one(Instant now) {
  bool freed = false;
  while (!freed) {
    BudgetWaiter* giver = next_offer();
    if (giver == nullptr) break;
    freed = giver->give_slot(now) || withdraw(*giver, now);
  }
  // What was withdrawn for a moment may have been missed by a thread that was freeing a slot.
  release_for_starved(now);
  return freed;
}

void ConnectionBudget::list_offer(BudgetWaiter& who) {
  const std::scoped_lock lock(mutex_);
  who.offers_.store(1, std::memory_order_seq_cst);
  if (static_cast<ListHook<OfferTag>&>(who).linked()) return;
  who.looked_at_ = who.last_use();
  offers_.push_back(who);
}

// The next destination to ask. Null: nobody offers anything.
BudgetWaiter* ConnectionBudget::next_offer() {
  const std::scoped_lock lock(mutex_);
  return offers_.empty() ? nullptr : &offered();
}

// The same. Null: the caller is no longer freeing; both in one step, so that the next offer finds either this thread at
// work or none.
BudgetWaiter* ConnectionBudget::next_offer_or_stop() {
  const std::scoped_lock lock(mutex_);
  if (!offers_.empty()) return &offered();
  --freeing_;
  return nullptr;
}

// Under the mutex: the first one that was not used since the hand passed it, after a bounded number of others.
BudgetWaiter& ConnectionBudget::offered() {
  for (unsigned chances = kSecondChances; chances != 0; --chances) {
    BudgetWaiter& next = offers_.front();
    const Instant used = next.last_use();
    if (used <= next.looked_at_) break;
    next.looked_at_ = used;
    static_cast<ListHook<OfferTag>&>(next).unlink();
    offers_.push_back(next);
  }
  return offers_.front();
}

// `who` had nothing to give. True: it had after all, and is listed again.
bool ConnectionBudget::withdraw(BudgetWaiter& who, Instant now) {
  {
    const std::scoped_lock lock(mutex_);
    static_cast<ListHook<OfferTag>&>(who).unlink();
    who.offers_.exchange(0, std::memory_order_seq_cst);
  }
  // The pair of offer(): a connection that became idle before that found the mark and relied on it.
  if (!who.give_slot(now)) return false;
  list_offer(who);
  return true;
}

// ---- claims ----

bool ConnectionBudget::may_claim(std::uint32_t uses, Duration age) {
  const std::uint32_t hand_offs = hand_offs_.fetch_add(1, std::memory_order_relaxed) + 1;
  return uses >= kQuantumUses || age >= kQuantum || hand_offs >= kMostHandOffs;
}

// Under the mutex: would a slot of `who` leave the head of the queue better off than `who` is then? Else two
// destinations that both lack slots would exchange theirs for ever, so the head's turn passes to the next one.
bool ConnectionBudget::gains_from(const BudgetWaiter& who) {
  BudgetWaiter* next = head();
  if (next == nullptr || covered()) return false;
  const std::uint32_t held = next->slots();
  if (next != &who && (held == 0 || who.slots() > held + 1)) return true;
  if (!next->holds_nothing_) holding_some_.push_back(holding_some_.pop_front());
  return false;
}

bool ConnectionBudget::claim_hand_off(const BudgetWaiter& who, std::uint32_t uses, Duration age) {
  if (!anyone_starved() || !may_claim(uses, age)) return false;
  const std::scoped_lock lock(mutex_);
  if (!gains_from(who)) return false;
  hand_offs_.store(0, std::memory_order_relaxed);
  return true;
}

bool ConnectionBudget::claim_session(const BudgetWaiter& who, std::uint32_t uses, Duration age, Instant now) {
  if (!anyone_starved() || !may_claim(uses, age)) return false;
  const std::scoped_lock lock(mutex_);
  if (now < session_claim_at_ || !gains_from(who)) return false;
  session_claim_at_ = now + kQuantum;
  hand_offs_.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace carpool::pool
