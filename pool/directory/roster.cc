#include "pool/directory/roster.h"

#include <utility>

#include "base/assert.h"

namespace carpool::pool {

Roster::Place Roster::place_of(std::uint64_t number, const Destination& destination) {
  return {destination.last_borrow() != Instant{}, destination.last_use(), number};
}

Roster::Members::iterator Roster::find(const Destination& destination) {
  const auto number = numbers_.find(&destination);
  return number == numbers_.end() ? members_.end() : members_.find(number->second);
}

Destination& Roster::add(std::unique_ptr<Destination> made, Standing standing) {
  const std::uint64_t number = last_ + 1;
  Destination& added = *made;
  Members made_alone;  // the node is allocated first: a later failure undoes everything
  Member& member = made_alone.emplace(number, Member{std::move(made), std::nullopt, false}).first->second;
  numbers_.emplace(&added, number);
  try {
    if (standing == Standing::guest) member.place = *guests_.insert(place_of(number, added)).first;
  } catch (...) {
    numbers_.erase(&added);
    throw;
  }
  members_.insert(made_alone.extract(number));
  last_ = number;
  return added;
}

// A guest that cannot be listed because memory is exhausted counts as configured until the next change.
void Roster::set_standing(const Destination& destination, Standing standing) {
  const auto found = find(destination);
  if (found == members_.end() || found->second.leaving) return;
  Member& member = found->second;
  if ((standing == Standing::guest) == member.place.has_value()) return;
  if (standing == Standing::guest) {
    const Place place = place_of(found->first, destination);
    guests_.insert(place);
    member.place = place;
  } else {
    guests_.erase(*std::exchange(member.place, std::nullopt));
  }
}

Destination* Roster::next(std::uint64_t& number) const {
  const auto found = members_.upper_bound(number);
  if (found == members_.end()) return nullptr;
  number = found->first;
  return found->second.destination.get();
}

// Does not allocate: the node is moved.
void Roster::move(Member& member, Place to) {
  auto node = guests_.extract(*member.place);
  member.place = node.value() = to;
  guests_.insert(std::move(node));
}

// Each iteration but the last moves a guest that was used since it was last seen: the cost is amortized over its uses.
Destination* Roster::least_recent(Instant now) {
  constexpr int kMaxExamined = 4096;
  for (int look = 0; look < kMaxExamined && !guests_.empty(); ++look) {
    const Place seen = *guests_.begin();
    Member& member = members_.find(seen.number)->second;
    const Place is = place_of(seen.number, *member.destination);
    if (is > seen) {
      move(member, is);
      continue;
    }
    move(member, {true, now, seen.number});
    return member.destination.get();
  }
  return nullptr;
}

void Roster::leaves(const Destination& destination) {
  const auto found = find(destination);
  if (found == members_.end() || std::exchange(found->second.leaving, true)) return;
  ++leaving_;
  if (found->second.place) guests_.erase(*std::exchange(found->second.place, std::nullopt));
}

std::unique_ptr<Destination> Roster::take(const Destination& destination) {
  const auto found = find(destination);
  CARPOOL_ASSERT(found != members_.end());
  if (found->second.leaving) --leaving_;
  if (found->second.place) guests_.erase(*found->second.place);
  std::unique_ptr<Destination> taken = std::move(found->second.destination);
  members_.erase(found);
  numbers_.erase(taken.get());
  return taken;
}

}  // namespace carpool::pool
