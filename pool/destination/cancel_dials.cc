// Dials that are too many: who they were begun for has left, or was served by another. Whoever comes next gets what
// they bring, so they go on as long as they may be of use soon, and what is past TCP always. Recalled are:
//   - where a session came that serves everybody, the dials beside it;
//   - where a place is needed, for another kind or under the total by another origin, what holds it for nobody;
//   - what nobody needed at this look nor at the last one and has been on its way much longer than is usual: all but
//     one, the oldest, which finds out what the origin does.
// Never one begun for a moment that is to come (min_idle, warm_up, ..), and none because a connection came back to
// serve its borrower: then the load is as high as it was, and who gave up its dial would begin the next one at once.
#include <algorithm>
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

namespace {
constexpr std::uint32_t kAtOnce = 64;  // of one look
}

// Under the mutex: would the line be served without it, and the `lacking` ones of min_idle?
bool Destination::Impl::surplus(const SlotEntry& dial, std::uint32_t lacking) const {
  const Slot& slot = dial.value;
  if (!for_the_line(slot.opened.load(std::memory_order_relaxed))) return false;
  // A loop's only way to a session of its own.
  const bool only = slot.counted_local && counters[slot.local_to].sessions.load(std::memory_order_relaxed) == 1;
  return may_cancel(slot.asked, lacking) && (slot.asked == ProtocolMask::h1_only || !only);
}

// One of the dials that were asked for this.
bool Destination::Impl::may_cancel(ProtocolMask asked, std::uint32_t lacking) const {
  const std::uint32_t h1 = line.wanting(ProtocolMask::h1_only);
  if (asked == ProtocolMask::h1_only) return h1_dials > h1 + cancels;
  const std::uint32_t others = line_dials > cancels ? line_dials - cancels - 1 : 0;
  return line_dials > cancels && others * streams_a_dial() >= line.size() - h1 + lacking;
}

// Of the dials that are on the list and were begun by then.
SlotEntry* Destination::Impl::youngest_surplus_dial(Instant begun_before) {
  if (line_dials + h1_dials <= cancels) return nullptr;
  const std::uint32_t lacking = lacking_idle_now();
  SlotEntry* youngest = nullptr;
  for (List<CancelDialMessage, DialTag>* list : {&line_dials_begun, &h1_dials_begun}) {
    std::uint32_t looked_at = 0;
    for (CancelDialMessage* at = list->last(); at != nullptr && looked_at < DeferredActions::kMostSteps;
         at = list->previous(at)) {
      ++looked_at;
      const Instant begun = at->entry->value.opened_at.get();
      if (begun > begun_before || at->on_its_way) continue;     // a message of the dial before
      if (!may_cancel(at->entry->value.asked, lacking)) break;  // then none of this list
      if (!surplus(*at->entry, lacking)) continue;              // its loop's only one
      if (youngest == nullptr || begun >= youngest->value.opened_at.get()) youngest = at->entry;
      break;
    }
  }
  return youngest;
}

List<CancelDialMessage, DialTag>& Destination::Impl::cancellable(const SlotEntry& dial) {
  return dial.value.asked == ProtocolMask::h1_only ? h1_dials_begun : line_dials_begun;
}

void Destination::Impl::cancel_dial(SlotEntry& dial, DeferredActions& actions) {
  CancelDialMessage& message = dial.value.cancel_message;
  static_cast<ListHook<DialTag>&>(message).unlink();  // past recall
  message.generation = EntryWord(dial.word.load(std::memory_order_relaxed)).generation();
  message.on_its_way = message.cancelled = true;
  message.promised = false;
  ++cancels;
  actions.cancels.push(message);
}

// Now and then.
void Destination::Impl::cancel_lasting_surplus(DeferredActions& actions, Instant now) {
  const Instant begun_before = now - std::max(limits.dial_patience, 4 * dial_time);
  SlotEntry* dial = youngest_surplus_dial(begun_before);
  const bool lasts = std::exchange(saw_surplus, dial != nullptr);
  if (!lasts || limits.maximize) return;
  for (std::uint32_t n = 0; n < kAtOnce && dial != nullptr && dials - cancels > 1; ++n) {
    cancel_dial(*dial, actions);
    dial = youngest_surplus_dial(begun_before);
  }
}

// A session came.
void Destination::Impl::cancel_surplus_beside(const SlotEntry& came, DeferredActions& actions, Instant now) {
  if (EntryWord(came.word.load(std::memory_order_acquire)).closed()) return;
  while (SlotEntry* dial = youngest_surplus_dial(now)) {
    if (!actions.step()) return;
    cancel_dial(*dial, actions);
  }
}

// Somebody in line needs a place: one at a time. Who gives it up plans again.
bool Destination::Impl::cancel_dial_for_slot(DeferredActions& actions, Instant now) {
  if (cancels != 0) return true;
  SlotEntry* dial = youngest_surplus_dial(now);
  if (dial != nullptr) cancel_dial(*dial, actions);
  return dial != nullptr;
}

// Another destination needs a place under the total.
bool Destination::Impl::cancel_one_dial(Instant now) {
  DeferredActions actions;
  {
    const std::scoped_lock lock(mutex);
    SlotEntry* dial = youngest_surplus_dial(now);
    if (dial == nullptr) return false;
    cancel_dial(*dial, actions);
    if (budget != nullptr) budget->note_pending_release();
    dial->value.cancel_message.promised = budget != nullptr;
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
  bool still = false, promised = false;
  {
    const std::scoped_lock lock(mutex);
    promised = std::exchange(message.promised, false);
    message.on_its_way = false;
    --cancels;
    const EntryWord word(dial.word.load(std::memory_order_acquire));
    const bool there = word.reserved() && word.generation() == message.generation;
    still = there && surplus(dial, lacking_idle_now());
    if (there && !still) {  // somebody needs it again
      message.cancelled = false;
      cancellable(dial).push_back(message);
    }
  }
  if (still) environment.cancel_dial(self, dial.index, message.generation);
  if (promised) budget->pending_release_ended();
  serve_waiters(now);  // who waited for its place looks again
}

void Destination::Impl::given_up(const Reservation& reservation, Instant now) {
  SlotEntry& entry = slot_entry(reservation.index());
  DeferredActions actions;
  {
    const std::scoped_lock lock(mutex);
    dial_ended(entry);
    end(entry, CloseCause::surplus, actions);
  }
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

}  // namespace carpool::pool
