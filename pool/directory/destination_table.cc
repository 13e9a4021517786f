#include "pool/directory/destination_table.h"

#include <utility>

#include "base/assert.h"

namespace carpool::pool {

DestinationTable::Place DestinationTable::place_of(std::uint64_t number, const Destination& destination) {
  return {destination.last_borrow() != Instant{}, destination.last_use(), number};
}

DestinationTable::Members::iterator DestinationTable::find(const Destination& destination) {
  const auto number = numbers_.find(&destination);
  return number == numbers_.end() ? members_.end() : members_.find(number->second);
}

Destination& DestinationTable::add(std::unique_ptr<Destination> made, Listing listing) {
  const std::uint64_t number = last_ + 1;
  Destination& added = *made;
  Members made_alone;  // the node is allocated first: a later failure undoes everything
  Member& member = made_alone.emplace(number, Member{std::move(made), std::nullopt, false}).first->second;
  numbers_.emplace(&added, number);
  try {
    if (listing == Listing::unlisted) member.place = *unlisted_.insert(place_of(number, added)).first;
  } catch (...) {
    numbers_.erase(&added);
    throw;
  }
  members_.insert(made_alone.extract(number));
  last_ = number;
  return added;
}

// An unlisted destination that has no place because memory is exhausted counts as configured until the next change.
void DestinationTable::set_listing(const Destination& destination, Listing listing) {
  const auto found = find(destination);
  if (found == members_.end() || found->second.leaving) return;
  Member& member = found->second;
  if ((listing == Listing::unlisted) == member.place.has_value()) return;
  if (listing == Listing::unlisted) {
    const Place place = place_of(found->first, destination);
    unlisted_.insert(place);
    member.place = place;
  } else {
    unlisted_.erase(*std::exchange(member.place, std::nullopt));
  }
}

Destination* DestinationTable::next(std::uint64_t& number) const {
  const auto found = members_.upper_bound(number);
  if (found == members_.end()) return nullptr;
  number = found->first;
  return found->second.destination.get();
}

// Does not allocate: the node is moved.
void DestinationTable::move(Member& member, Place to) {
  auto node = unlisted_.extract(*member.place);
  member.place = node.value() = to;
  unlisted_.insert(std::move(node));
}

// Each iteration but the last moves an unlisted destination that was used since it was last seen: the cost is amortized
// over its uses.
Destination* DestinationTable::least_recent(Instant now) {
  constexpr int kMaxMoves = 4096;
  for (int moves = 0; moves < kMaxMoves && !unlisted_.empty(); ++moves) {
    const Place seen = *unlisted_.begin();
    Member& member = members_.find(seen.number)->second;
    const Place is = place_of(seen.number, *member.destination);
    if (seen < is) {
      move(member, is);
      continue;
    }
    move(member, {true, now, seen.number});
    return member.destination.get();
  }
  return nullptr;
}

void DestinationTable::mark_leaving(const Destination& destination) {
  const auto found = find(destination);
  if (found == members_.end() || std::exchange(found->second.leaving, true)) return;
  ++leaving_;
  if (found->second.place) unlisted_.erase(*std::exchange(found->second.place, std::nullopt));
}

std::unique_ptr<Destination> DestinationTable::take(const Destination& destination) {
  const auto found = find(destination);
  CARPOOL_ASSERT(found != members_.end());
  if (found->second.leaving) --leaving_;
  if (found->second.place) unlisted_.erase(*found->second.place);
  std::unique_ptr<Destination> taken = std::move(found->second.destination);
  members_.erase(found);
  numbers_.erase(taken.get());
  return taken;
}

}  // namespace carpool::pool
