// Cancelling surplus dials: those whose borrower left or was served otherwise. The next borrower can use the result, so
// they continue while they may soon be of use, and always once TCP is established. Cancelled are:
//   - the dials beside a new session that serves every waiter;
//   - an unneeded dial whose place is needed for another protocol or, under the budget, by another destination;
//   - dials that were unneeded at this sweep and the last one and take much longer than usual: all but the
//     oldest, which shows how the origin behaves.
// Dials for future demand (min_idle, warm_up, ..) are never cancelled, nor is one because a connection was released and
// served its borrower: the load is unchanged, and the next borrower would dial again at once.
#include <algorithm>
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

namespace {
constexpr std::uint32_t kAtOnce = 64;  // cancellations of one sweep
}

// Returns true if the waiters and the `missing` connections of min_idle are served without this dial.
bool Destination::Impl::surplus(const SlotEntry& dial, std::uint32_t missing) const {
  const Slot& slot = dial.value;
  if (!for_waiters(slot.opened.load(std::memory_order_relaxed))) return false;
  // The loop's only dial for a session of its own.
  const bool only = slot.counted_local && counters[slot.local_to].sessions.load(std::memory_order_relaxed) == 1;
  return may_cancel(slot.asked, missing) && (slot.asked == ProtocolMask::h1_only || !only);
}

// Returns true if one of the dials for `asked` is surplus.
bool Destination::Impl::may_cancel(ProtocolMask asked, std::uint32_t missing) const {
  const std::uint32_t h1 = queue.wanting(ProtocolMask::h1_only);
  if (asked == ProtocolMask::h1_only) return supply.h1_dials() > h1 + supply.cancels();
  if (supply.waiter_dials() <= supply.cancels()) return false;
  const std::uint32_t others = supply.waiter_dials() - supply.cancels() - 1;
  return others * supply.streams_a_dial() >= queue.size() - h1 + missing;
}

// Returns the youngest surplus dial that can be cancelled and was started by then, or null.
SlotEntry* Destination::Impl::youngest_surplus_dial(Instant begun_before) {
  if (!supply.may_cancel()) return nullptr;
  const std::uint32_t missing = missing_idle_now();
  SlotEntry* youngest = nullptr;
  for (List<CancelDialMessage, DialTag>* list : {&waiter_dials_begun, &h1_dials_begun}) {
    std::uint32_t examined = 0;
    for (CancelDialMessage* at = list->last(); at != nullptr && examined < DeferredActions::kMaxSteps;
         at = list->previous(at)) {
      ++examined;
      const Instant begun = at->entry->value.opened_at.get();
      if (begun > begun_before || at->on_its_way) continue;     // the message belongs to an earlier dial
      if (!may_cancel(at->entry->value.asked, missing)) break;  // no other of this list either
      if (!surplus(*at->entry, missing)) continue;              // its loop's only one
      if (youngest == nullptr || begun >= youngest->value.opened_at.get()) youngest = at->entry;
      break;
    }
  }
  return youngest;
}

List<CancelDialMessage, DialTag>& Destination::Impl::cancellable(const SlotEntry& dial) {
  return dial.value.asked == ProtocolMask::h1_only ? h1_dials_begun : waiter_dials_begun;
}

void Destination::Impl::cancel_dial(SlotEntry& dial, DeferredActions& actions) {
  CancelDialMessage& message = dial.value.cancel_message;
  static_cast<ListHook<DialTag>&>(message).unlink();  // can no longer be cancelled
  message.generation = EntryWord(dial.word.load(std::memory_order_relaxed)).generation();
  message.to = dial.value.dialed_on;
  message.on_its_way = message.cancelled = true;
  message.announced = false;
  supply.cancel_sent();
  actions.cancels.push(message);
}

// Called by each sweep.
void Destination::Impl::cancel_lasting_surplus(DeferredActions& actions, Instant now) {
  const Instant begun_before = now - std::max(limits.surplus_dial_age, 4 * dial_time);
  SlotEntry* dial = youngest_surplus_dial(begun_before);
  const bool lasts = std::exchange(saw_surplus, dial != nullptr);
  if (!lasts || limits.maximize) return;
  for (std::uint32_t n = 0; n < kAtOnce && dial != nullptr && supply.lasting_dials() > 1; ++n) {
    cancel_dial(*dial, actions);
    dial = youngest_surplus_dial(begun_before);
  }
}

// Called when a session was opened.
void Destination::Impl::cancel_surplus_beside(const SlotEntry& opened, DeferredActions& actions, Instant now) {
  if (EntryWord(opened.word.load(std::memory_order_acquire)).closed()) return;
  while (SlotEntry* dial = youngest_surplus_dial(now)) {
    if (!actions.step()) return;
    cancel_dial(*dial, actions);
  }
}

// Cancels one dial at a time for a waiter that needs a place. arrive_cancel() then serves the waiters again.
bool Destination::Impl::cancel_dial_for_slot(DeferredActions& actions, Instant now) {
  if (supply.cancels() != 0) return true;
  SlotEntry* dial = youngest_surplus_dial(now);
  if (dial != nullptr) cancel_dial(*dial, actions);
  return dial != nullptr;
}

// Cancels one dial for another destination that needs a slot of the budget.
bool Destination::Impl::cancel_one_dial(Instant now) {
  DeferredActions actions;
  {
    const Held lock(mutex);
    SlotEntry* dial = youngest_surplus_dial(now);
    if (dial == nullptr) return false;
    cancel_dial(*dial, actions);
    if (budget != nullptr) budget->note_pending_release();
    dial->value.cancel_message.announced = budget != nullptr;
  }
  static_cast<void>(run_actions(actions));
  return true;
}

// ---- on the loop of the dial ----

void CancelDialMessage::arrive(Instant now) {
  entry->value.owner->arrive_cancel(*this, now);
}

void Destination::Impl::arrive_cancel(CancelDialMessage& message, Instant now) {
  SlotEntry& dial = *message.entry;
  bool still = false, announced = false;
  {
    const Held lock(mutex);
    announced = std::exchange(message.announced, false);
    message.on_its_way = false;
    supply.cancel_arrived();
    const EntryWord word(dial.word.load(std::memory_order_acquire));
    const bool there = word.reserved() && word.generation() == message.generation;
    still = there && surplus(dial, missing_idle_now());
    if (there && !still) {  // it is needed again
      message.cancelled = false;
      cancellable(dial).push_back(message);
    }
  }
  if (still) environment.cancel_dial(self, dial.index, message.generation);
  if (announced) budget->pending_release_ended();
  serve_waiters(now);  // the waiter that needs the place is scheduled again
}

void Destination::Impl::given_up(const Reservation& reservation, Instant now) {
  SlotEntry& entry = slot_entry(reservation.index());
  DeferredActions actions;
  {
    const Held lock(mutex);
    supply.dial_failed(dial_ended(entry));
    end(entry, CloseCause::surplus, actions);
  }
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

}  // namespace carpool::pool
