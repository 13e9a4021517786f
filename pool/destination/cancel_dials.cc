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
bool Destination::Impl::spare(const Chair& dial, std::uint32_t lacking) const {
  const Seat& seat = dial.value;
  if (!for_the_line(seat.opened.load(std::memory_order_relaxed))) return false;
  // A loop's only way to a session of its own.
  const bool only = seat.counted_local && counters[seat.local_to].sessions.load(std::memory_order_relaxed) == 1;
  return may_spare(seat.asked, lacking) && (seat.asked == Kinds::h1_only || !only);
}

// One of the dials that were asked for this.
bool Destination::Impl::may_spare(Kinds asked, std::uint32_t lacking) const {
  const std::uint32_t h1 = line.wanting(Kinds::h1_only);
  if (asked == Kinds::h1_only) return h1_dials > h1 + recalls;
  const std::uint32_t others = line_dials > recalls ? line_dials - recalls - 1 : 0;
  return line_dials > recalls && others * streams_a_dial() >= line.size() - h1 + lacking;
}

// Of the dials that are on the list and were begun by then.
Chair* Destination::Impl::youngest_spare_dial(Instant begun_before) {
  if (line_dials + h1_dials <= recalls) return nullptr;
  const std::uint32_t lacking = lacking_idle_now();
  Chair* youngest = nullptr;
  for (List<Recall, DialTag>* list : {&line_dials_begun, &h1_dials_begun}) {
    std::uint32_t looked_at = 0;
    for (Recall* at = list->last(); at != nullptr && looked_at < Errands::kMostSteps; at = list->previous(at)) {
      ++looked_at;
      const Instant begun = at->entry->value.opened_at.get();
      if (begun > begun_before || at->on_its_way) continue;    // a letter of the dial before
      if (!may_spare(at->entry->value.asked, lacking)) break;  // then none of this list
      if (!spare(*at->entry, lacking)) continue;               // its loop's only one
      if (youngest == nullptr || begun >= youngest->value.opened_at.get()) youngest = at->entry;
      break;
    }
  }
  return youngest;
}

List<Recall, DialTag>& Destination::Impl::recallable(const Chair& dial) {
  return dial.value.asked == Kinds::h1_only ? h1_dials_begun : line_dials_begun;
}

void Destination::Impl::recall(Chair& dial, Errands& work) {
  Recall& letter = dial.value.recall;
  static_cast<ListHook<DialTag>&>(letter).unlink();  // past recall
  letter.generation = Word(dial.word.load(std::memory_order_relaxed)).generation();
  letter.on_its_way = letter.said = true;
  letter.promised = false;
  ++recalls;
  work.recalls.push(letter);
}

// Now and then.
void Destination::Impl::recall_what_lasts(Errands& work, Instant now) {
  const Instant begun_before = now - std::max(limits.dial_patience, 4 * dial_time);
  Chair* dial = youngest_spare_dial(begun_before);
  const bool lasts = std::exchange(saw_spare, dial != nullptr);
  if (!lasts || limits.maximize) return;
  for (std::uint32_t n = 0; n < kAtOnce && dial != nullptr && dials - recalls > 1; ++n) {
    recall(*dial, work);
    dial = youngest_spare_dial(begun_before);
  }
}

// A session came.
void Destination::Impl::recall_beside(const Chair& came, Errands& work, Instant now) {
  if (Word(came.word.load(std::memory_order_acquire)).closed()) return;
  while (Chair* dial = youngest_spare_dial(now)) {
    if (!work.step()) return;
    recall(*dial, work);
  }
}

// Somebody in line needs a place: one at a time. Who gives it up plans again.
bool Destination::Impl::recall_for_room(Errands& work, Instant now) {
  if (recalls != 0) return true;
  Chair* dial = youngest_spare_dial(now);
  if (dial != nullptr) recall(*dial, work);
  return dial != nullptr;
}

// Another destination needs a place under the total.
bool Destination::Impl::recall_dial(Instant now) {
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    Chair* dial = youngest_spare_dial(now);
    if (dial == nullptr) return false;
    recall(*dial, work);
    if (budget != nullptr) budget->note_pending_release();
    dial->value.recall.promised = budget != nullptr;
  }
  static_cast<void>(perform(work));
  return true;
}

// ---- on the loop of the dial ----

void Recall::arrive(Instant now) {
  entry->value.owner->arrive_recall(*this, now);
}

void Destination::Impl::arrive_recall(Recall& letter, Instant now) {
  Chair& dial = *letter.entry;
  bool still = false, promised = false;
  {
    const std::scoped_lock lock(mutex);
    promised = std::exchange(letter.promised, false);
    letter.on_its_way = false;
    --recalls;
    const Word word(dial.word.load(std::memory_order_acquire));
    const bool there = word.reserved() && word.generation() == letter.generation;
    still = there && spare(dial, lacking_idle_now());
    if (there && !still) {  // somebody needs it again
      letter.said = false;
      recallable(dial).push_back(letter);
    }
  }
  if (still) house.recall(self, dial.index, letter.generation);
  if (promised) budget->pending_release_ended();
  attend(now);  // who waited for its place looks again
}

void Destination::Impl::given_up(const Reservation& reservation, Instant now) {
  Chair& entry = chair(reservation.index());
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    dial_ended(entry);
    end(entry, Closed::surplus, work);
  }
  finish(work, now, Opened::all_busy);
}

}  // namespace carpool::pool
