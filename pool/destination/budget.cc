// The destination's side of the ConnectionBudget: which slots it gives to starved destinations, and when it serves
// them.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Instant Destination::Impl::last_use() const {
  return self.last_borrow();
}

// Returns true if this connection must be closed instead of being handed on.
bool Destination::Impl::claimed(const SlotEntry& entry, Instant now) {
  if (budget == nullptr || !budget->has_starved()) return false;
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  return budget->claim_hand_off(*this, uses, now - entry.value.established_at);
}

// Returns true if this session, which just lost a user, must accept no new one. The session's age counts from the
// start of its dial: `established_at` is guarded by the mutex.
bool Destination::Impl::session_claimed(const SlotEntry& entry, Instant now) {
  if (budget == nullptr || !budget->has_starved()) return false;
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  return budget->claim_session(*this, uses, now - entry.value.opened_at.get(), now);
}

// Offers the slot of a connection that became idle.
void Destination::Impl::offer_slots() {
  if (budget != nullptr) budget->offer(*this);
}

// Must be called when a waiter left the queue, because a dial may be unneeded then.
void Destination::Impl::offer_surplus_dials() {
  if (budget == nullptr) return;
  if (queue.empty()) budget->forget_starved(*this);
  if (supply.may_cancel()) budget->offer(*this);
}

// Must be called after every event that may free a slot or starve a destination. Never called from
// on_slot() or give_slot(), which the budget calls in its own loop.
void Destination::Impl::serve_starved(Instant now) {
  if (budget != nullptr && budget->has_starved()) budget->release_for_starved(now);
}

}  // namespace carpool::pool
