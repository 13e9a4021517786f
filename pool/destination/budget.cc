// The destination under the budget of all: what it gives to destinations that lack a slot, and when it looks after
// them.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Instant Destination::Impl::last_use() const {
  return self.last_borrow();
}

// Under the mutex: must this connection be closed instead of being handed on?
bool Destination::Impl::claimed(const SlotEntry& entry, Instant now) {
  if (budget == nullptr || !budget->anyone_starved()) return false;
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  return budget->claim_hand_off(*this, uses, now - entry.value.born);
}

// Must this session, of which a stream came back, take nobody new? No mutex is held: the session's age is that of its
// dial.
bool Destination::Impl::session_claimed(const SlotEntry& entry, Instant now) {
  if (budget == nullptr || !budget->anyone_starved()) return false;
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  return budget->claim_session(*this, uses, now - entry.value.opened_at.get(), now);
}

// A connection became idle.
void Destination::Impl::offer_slots() {
  if (budget != nullptr) budget->offer(*this);
}

// Under the mutex: somebody left the line, so a dial may be one that nobody needs.
void Destination::Impl::offer_surplus_dials() {
  if (budget == nullptr) return;
  if (line.empty()) budget->forget_starved(*this);
  if (line_dials + h1_dials > cancels) budget->offer(*this);
}

// No mutex is held: every event that may free a slot or leave one wanting ends here. Never called from on_slot() or
// give_slot(), which the budget calls in its own loop.
void Destination::Impl::serve_starved(Instant now) {
  if (budget != nullptr && budget->anyone_starved()) budget->release_for_starved(now);
}

}  // namespace carpool::pool
