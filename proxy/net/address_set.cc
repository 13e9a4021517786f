#include "proxy/net/address_set.h"

#include <algorithm>
#include <utility>

namespace carpool::proxy::net {

AddressSet::Place* AddressSet::find(const Address& address) {
  const auto found =
      std::find_if(places_.begin(), places_.end(), [&](const Place& place) { return place.address == address; });
  return found == places_.end() ? nullptr : &*found;
}

AddressSet::Place& AddressSet::at(const Address& address) {
  if (Place* known = find(address)) return *known;
  if (places_.size() >= kMost) drop_unneeded();
  return places_.emplace_back(Place{address});
}

void AddressSet::drop_unneeded() {
  std::erase_if(places_, [this](const Place& place) {
    if (place.needed()) return false;
    if (place.failures != 0) in_trouble_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  });
}

void AddressSet::follow(const AddressRules& rules) {
  const std::scoped_lock lock(mutex_);
  rules_ = rules;
}

bool AddressSet::learn(const std::vector<Address>& addresses, Instant now) {
  const std::scoped_lock lock(mutex_);
  bool other = false;
  for (Place& place : places_) {
    if (std::find(addresses.begin(), addresses.end(), place.address) != addresses.end()) place.named_at = now;
    const bool named = now - place.named_at < rules_.gone_after;
    other |= named != place.named;
    place.named = named;
  }
  drop_unneeded();
  for (const Address& address : addresses) {
    if (places_.size() < kMost && find(address) == nullptr) at(address).named_at = now;
  }
  if (other) version_.fetch_add(1, std::memory_order_relaxed);
  return other;
}

std::vector<Address> AddressSet::order(std::vector<Address> addresses, Instant now) {
  const std::scoped_lock lock(mutex_);
  if (addresses.empty()) return addresses;
  if (addresses.size() > kMost) addresses.resize(kMost);
  const auto usable = std::stable_partition(addresses.begin(), addresses.end(),
                                            [&](const Address& address) { return !at(address).ejected(now); });
  if (usable != addresses.begin()) {
    // Families are not mixed; the first address has the family that the system prefers (RFC 6724).
    const int family = addresses.front().family();
    const auto end = std::stable_partition(addresses.begin(), usable,
                                           [family](const Address& address) { return address.family() == family; });
    const auto count = static_cast<std::size_t>(end - addresses.begin());
    const std::size_t one = random_.below(count);
    std::size_t other = count > 1 ? random_.below(count - 1) : 0;
    if (count > 1 && other >= one) ++other;
    const auto load = [this](const Address& address) {
      const Place& place = at(address);
      return place.open + place.dialing;
    };
    const std::size_t best = load(addresses[other]) < load(addresses[one]) ? other : one;
    std::rotate(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(best),
                addresses.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  ++at(addresses.front()).dialing;
  return addresses;
}

void AddressSet::dial_ended(const Address& first) {
  const std::scoped_lock lock(mutex_);
  Place* place = find(first);
  if (place != nullptr && place->dialing != 0) --place->dialing;
}

void AddressSet::opened(const Address& address) {
  const std::scoped_lock lock(mutex_);
  ++at(address).open;
}

void AddressSet::closed(const Address& address) {
  const std::scoped_lock lock(mutex_);
  Place* place = find(address);
  if (place != nullptr && place->open != 0) --place->open;
}

void AddressSet::failed(const Address& address, Instant now) {
  const std::scoped_lock lock(mutex_);
  Place& place = at(address);
  if (place.failures++ == 0) in_trouble_.fetch_add(1, std::memory_order_relaxed);
  if (rules_.eject_after != 0 && place.failures >= rules_.eject_after && !place.ejected(now)) eject(place, now);
}

// Never ejects more than half of the addresses: if all fail, the address is not the cause.
void AddressSet::eject(Place& place, Instant now) {
  std::size_t named = 0, out = 0;
  for (const Place& one : places_) {
    if (!one.named) continue;
    ++named;
    if (one.ejected(now)) ++out;
  }
  if (2 * (out + 1) > named) return;
  place.failures = 0;
  in_trouble_.fetch_sub(1, std::memory_order_relaxed);
  // An address that worked for as long as the longest ejection starts over.
  place.relapses = place.ejections != 0 && now < place.ejected_until + kEjectAtMost ? place.relapses + 1 : 0;
  ++place.ejections;
  ejections_.fetch_add(1, std::memory_order_relaxed);
  const Duration longer = rules_.eject_time * static_cast<Duration::rep>(place.relapses + 1);
  place.ejected_until = now + std::max(rules_.eject_time, std::min(kEjectAtMost, longer));
  version_.fetch_add(1, std::memory_order_relaxed);
}

void AddressSet::forgive(const Address& address) {
  const std::scoped_lock lock(mutex_);
  Place* place = find(address);
  if (place == nullptr || std::exchange(place->failures, 0) == 0) return;
  in_trouble_.fetch_sub(1, std::memory_order_relaxed);
}

AddressSet::Verdict AddressSet::judge(const Address& address, Instant now) {
  const std::scoped_lock lock(mutex_);
  const Place* place = find(address);
  if (place != nullptr && place->named && !place->ejected(now)) return Verdict::keep;
  const bool gone = place == nullptr || !place->named;
  if (!gone) return Verdict::ejected;
  if (now < retired_last_ + rules_.retire_every) return Verdict::keep_for_now;
  retired_last_ = now;
  return Verdict::gone;
}

bool AddressSet::in_use() const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) { return place.open != 0; });
}

bool AddressSet::anyone_to_go(Instant now) const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(places_.begin(), places_.end(),
                     [now](const Place& place) { return place.open != 0 && (!place.named || place.ejected(now)); });
}

AddressSet::Counts AddressSet::count(Instant now) const {
  const std::scoped_lock lock(mutex_);
  Counts counts;
  for (const Place& place : places_) {
    ++(!place.named ? counts.gone : place.ejected(now) ? counts.ejected : counts.usable);
  }
  return counts;
}

std::vector<AddressSet::Facts> AddressSet::all(Instant now) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Facts> all;
  for (const Place& place : places_) {
    all.push_back(
        {place.address.text(), place.open, place.failures, place.ejections, place.ejected(now), !place.named});
  }
  return all;
}

}  // namespace carpool::proxy::net
