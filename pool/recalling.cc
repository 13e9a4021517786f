// Dials that are too many: who they were begun for has left, or was served by another. Whoever comes next gets what
// they bring, so they go on as long as they may be of use soon, and what is past TCP always. Recalled are:
//   - where a session came that serves everybody, the dials beside it;
//   - where a place is needed, for another kind or under the total by another origin, what holds it for nobody;
//   - what nobody needed at this look nor at the last one and has been on its way much longer than is usual: all but
//     one, the oldest, which finds out what the origin does.
// Never one begun for a moment that is to come (min_idle, warm_up, ..), and none because a connection came back to
// serve its borrower: then the load is as high as it was, and who gave up its dial would begin the next one at once.
#include <algorithm>

#include "pool/destination_impl.h"

namespace carpool::pool {

namespace {
constexpr std::uint32_t kAtOnce = 64;  // of one look
}

// Under the mutex: would the line be served without it, and the `lacking` ones of min_idle?
bool Destination::Impl::spare(const Chair& dial, std::uint32_t lacking) const {
  const Seat& seat = dial.value;
  if (!for_the_line(seat.opened.load(std::memory_order_relaxed))) return false;
  const std::uint32_t h1 = line.wanting(Kinds::h1_only);
  if (seat.asked == Kinds::h1_only) return h1_dials > h1 + recalls;
  // A loop's only way to a session of its own.
  if (seat.counted_local && counters[seat.local_to].sessions.load(std::memory_order_relaxed) == 1) return false;
  const std::uint32_t others = line_dials > recalls ? line_dials - recalls - 1 : 0;
  return line_dials > recalls && others * streams_a_dial() >= line.size() - h1 + lacking;
}

Chair* Destination::Impl::youngest_spare_dial(Instant begun_before) const {
  if (line_dials + h1_dials <= recalls) return nullptr;
  const std::uint32_t lacking = lacking_idle();
  Chair* youngest = nullptr;
  pool.for_each([&](Chair& entry) {
    const Seat& seat = entry.value;
    if (!Word(entry.word.load(std::memory_order_acquire)).reserved() || seat.recall.on_its_way) return;
    if (seat.recall.said || seat.opened_at.get() > begun_before || !spare(entry, lacking)) return;
    if (youngest == nullptr || seat.opened_at.get() >= youngest->value.opened_at.get()) youngest = &entry;
  });
  return youngest;
}

void Destination::Impl::recall(Chair& dial, Errands& work) {
  Recall& letter = dial.value.recall;
  letter.entry = &dial;
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
  while (Chair* dial = youngest_spare_dial(now)) recall(*dial, work);
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
    if (total != nullptr) total->promise();
    dial->value.recall.promised = total != nullptr;
  }
  static_cast<void>(perform(work, now));
  return true;
}

// ---- on the loop of the dial ----

void Recall::arrive(Instant now) {
  entry->value.owner->arrive_recall(*this, now);
}

void Destination::Impl::arrive_recall(Recall& letter, Instant now) {
  Chair& dial = *letter.entry;
  bool still = false;
  {
    const std::scoped_lock lock(mutex);
    letter.on_its_way = false;
    --recalls;
    const Word word(dial.word.load(std::memory_order_acquire));
    const bool there = word.reserved() && word.generation() == letter.generation;
    still = there && spare(dial, lacking_idle());
    if (there && !still) letter.said = false;  // somebody needs it again
  }
  if (letter.promised) total->keep_promise();
  if (still) house.recall(self, dial.index, letter.generation);
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
