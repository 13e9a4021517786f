#include "proxy/net/address_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/net/address_policy.h"

namespace carpool::proxy::net {

namespace {
// The order of the places; equal for addresses that differ only in their interface.
bool goes_before(const Address& a, const Address& b) {
  if (a.family() != b.family()) return a.family() < b.family();
  const int compared = a.bytes().compare(b.bytes());
  return compared != 0 ? compared < 0 : a.port() < b.port();
}
}  // namespace

// The seed differs between processes that start together, so that they do not dial the same addresses.
AddressSet::AddressSet(pool::Endpoints* endpoints)
    : pool_(endpoints),
      random_((reinterpret_cast<std::uintptr_t>(this) ^
               static_cast<std::uint64_t>(Clock::now().time_since_epoch().count())) |
              1) {}

AddressSet::Place* AddressSet::find(const Address& address) {
  for (auto next = first_not_before(address); next != places_.end(); ++next) {
    if (next->address == address) return &*next;
    if (goes_before(address, next->address)) break;
  }
  return nullptr;
}

std::vector<AddressSet::Place>::iterator AddressSet::first_not_before(const Address& address) {
  return std::lower_bound(places_.begin(), places_.end(), address,
                          [](const Place& place, const Address& sought) { return goes_before(place.address, sought); });
}

AddressSet::Place& AddressSet::at(const Address& address) {
  if (Place* known = find(address)) return *known;
  if (places_.size() >= kMax) drop_unneeded();
  if (spare_.empty()) spare_.push_back(endpoints_.emplace_back(std::make_unique<pool::Endpoint>()).get());
  Place& place = *places_.insert(first_not_before(address), Place{address});
  place.endpoint = spare_.back();
  spare_.pop_back();
  place.endpoint->reset();
  return place;
}

void AddressSet::drop_unneeded() {
  std::erase_if(places_, [this](const Place& place) {
    mutex_.assert_held();
    if (place.needed()) return false;
    if (place.failures != 0) failing_.fetch_sub(1, std::memory_order_relaxed);
    spare_.push_back(place.endpoint);
    return true;
  });
}

void AddressSet::follow(const AddressRules& rules) {
  const Held lock(mutex_);
  rules_ = rules;
  publish(reviewed_);
}

void AddressSet::draw_from(std::uint64_t seed) {
  const Held lock(mutex_);
  random_ = Random(seed);
}

void AddressSet::review(Instant now) {
  const Held lock(mutex_);
  publish(now);
}

// Returns true for an address over which the pool spreads requests; those of another family only replace them.
bool AddressSet::shares_requests(const Place& place) const {
  return place.named && !place.forbidden && !place.ejected(reviewed_) && place.address.family() == family_;
}

// Returns false if a dial would end at another address, so that it has no effect.
bool AddressSet::worth_a_dial(const Place& place) const {
  return place.missed_at == Instant{} || reviewed_ >= place.missed_at + rules_.eject_time;
}

// Reports to the pool how even its connections are.
void AddressSet::publish(Instant now) {
  using Balance = pool::Endpoints::Balance;
  reviewed_ = std::max(reviewed_, now);
  if (pool_ == nullptr) return;
  std::uint32_t count = 0, most = 0;
  std::array<pool::Endpoint*, kMax> reachable{};
  std::size_t reached = 0;
  least_ = UINT32_MAX;
  for (const Place& place : places_) {
    if (!shares_requests(place)) continue;
    ++count;
    if (place.open != 0 && reached < kMax) reachable[reached++] = place.endpoint;
    most = std::max(most, place.open);
    if (worth_a_dial(place)) least_ = std::min(least_, place.open + place.dialing);
  }
  const bool uneven = least_ != UINT32_MAX && most >= least_ + 2;
  const Balance balance = uneven ? Balance::uneven : least_ == 0 ? Balance::lacking : Balance::even;
  pool_->reach({reachable.data(), rules_.balance ? reached : 0});
  pool_->set(rules_.balance ? count : 0, balance, rules_.slow_start);
}

bool AddressSet::too_many(const Place& place) const {
  return shares_requests(place) && least_ != UINT32_MAX && place.open >= least_ + 2;
}

bool AddressSet::has_too_many(const Address& address) const {
  const Held lock(mutex_);
  return std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
    mutex_.assert_held();
    return place.address == address && too_many(place);
  });
}

bool AddressSet::closes_for_rebalance(const Address& address, Instant now) {
  const Held lock(mutex_);
  const Place* place = find(address);
  if (!needs_rebalance() || place == nullptr || !too_many(*place)) return false;
  if (now < retired_last_ + rules_.retire_every) return false;
  retired_last_ = now;
  pool_->rebalance_done();
  return true;
}

bool AddressSet::learn(const std::vector<Address>& addresses, Instant now) {
  const Held lock(mutex_);
  bool other = false;
  const bool first = places_.empty();
  for (const Address& address : addresses) {
    if (Place* known = find(address)) known->named_at = now;
  }
  for (Place& place : places_) {
    const bool named = now - place.named_at < rules_.gone_after;
    other |= named != place.named;
    if (named && !place.named) place.endpoint->begin(now);
    place.named = named;
  }
  drop_unneeded();
  for (const Address& address : addresses) {
    if (places_.size() >= kMax || find(address) != nullptr) continue;
    Place& place = at(address);
    place.named_at = now;
    if (!first) place.endpoint->begin(now);
  }
  if (!addresses.empty()) family_ = addresses.front().family();
  publish(now);
  if (other) version_.fetch_add(1, std::memory_order_relaxed);
  return other;
}

bool AddressSet::apply_policy(const AddressPolicy& policy, const pool::Origin& origin) {
  const Held lock(mutex_);
  bool found = false, changed = false;
  for (Place& place : places_) {
    const bool forbidden = !policy.may_dial(origin, place.address);
    changed |= std::exchange(place.forbidden, forbidden) != forbidden;
    found |= forbidden && place.open != 0;
  }
  publish(reviewed_);
  if (changed) version_.fetch_add(1, std::memory_order_relaxed);
  return found;
}

bool AddressSet::has_forbidden() const {
  const Held lock(mutex_);
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.forbidden && place.open != 0; });
}

std::vector<Address> AddressSet::order(std::vector<Address> addresses, Instant now) {
  const Held lock(mutex_);
  if (addresses.empty()) return addresses;
  if (addresses.size() > kMax) addresses.resize(kMax);
  const auto usable = std::stable_partition(addresses.begin(), addresses.end(), [&](const Address& address) {
    mutex_.assert_held();
    return !at(address).ejected(now);
  });
  if (usable != addresses.begin()) {
    // Families are not mixed; the first address has the family that the system prefers (RFC 6724).
    const int family = addresses.front().family();
    const auto end = std::stable_partition(addresses.begin(), usable,
                                           [family](const Address& address) { return address.family() == family; });
    reviewed_ = std::max(reviewed_, now);
    const std::size_t best = first_choice(addresses, static_cast<std::size_t>(end - addresses.begin()));
    std::rotate(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(best),
                addresses.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  ++at(addresses.front()).dialing;
  publish(now);
  return addresses;
}

// Returns the better of two random ones of the first `count`, or one without a connection if that has some.
std::size_t AddressSet::first_choice(const std::vector<Address>& addresses, std::size_t count) {
  const auto load = [this](const Address& address) {
    mutex_.assert_held();
    const Place& place = at(address);
    return place.open + place.dialing;
  };
  const std::size_t one = random_.below(count);
  std::size_t other = count > 1 ? random_.below(count - 1) : 0;
  if (count > 1 && other >= one) ++other;
  const std::size_t best = load(addresses[other]) < load(addresses[one]) ? other : one;
  if (!rules_.balance || load(addresses[best]) == 0) return best;
  for (std::size_t n = 1; n < count; ++n) {
    const std::size_t next = (best + n) % count;
    if (load(addresses[next]) == 0 && worth_a_dial(at(addresses[next]))) return next;
  }
  return best;
}

void AddressSet::dial_ended(const Address& first, bool reached, Instant now) {
  const Held lock(mutex_);
  Place* place = find(first);
  if (place == nullptr) return;
  if (place->dialing != 0) --place->dialing;
  if (!reached) place->missed_at = now;
  publish(now);
}

pool::Endpoint& AddressSet::opened(const Address& address) {
  const Held lock(mutex_);
  Place& place = at(address);
  ++place.open;
  place.missed_at = {};
  publish(reviewed_);
  return *place.endpoint;
}

void AddressSet::closed(const Address& address) {
  const Held lock(mutex_);
  Place* place = find(address);
  if (place == nullptr || place->open == 0) return;
  --place->open;
  publish(reviewed_);
}

void AddressSet::failed(const Address& address, Instant now) {
  const Held lock(mutex_);
  Place& place = at(address);
  if (place.failures++ == 0) failing_.fetch_add(1, std::memory_order_relaxed);
  place.missed_at = now;
  if (rules_.eject_after != 0 && place.failures >= rules_.eject_after && !place.ejected(now)) eject(place, now);
  publish(now);
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
  failing_.fetch_sub(1, std::memory_order_relaxed);
  // An address that worked for as long as the longest ejection starts over.
  place.repeated_ejections =
      place.ejections != 0 && now < place.ejected_until + kMaxEjection ? place.repeated_ejections + 1 : 0;
  ++place.ejections;
  ejections_.fetch_add(1, std::memory_order_relaxed);
  const Duration longer = rules_.eject_time * static_cast<Duration::rep>(place.repeated_ejections + 1);
  place.ejected_until = now + std::max(rules_.eject_time, std::min(kMaxEjection, longer));
  place.endpoint->begin(place.ejected_until);
  version_.fetch_add(1, std::memory_order_relaxed);
}

void AddressSet::clear_failures(const Address& address) {
  const Held lock(mutex_);
  Place* place = find(address);
  if (place == nullptr || std::exchange(place->failures, 0) == 0) return;
  failing_.fetch_sub(1, std::memory_order_relaxed);
}

AddressSet::Verdict AddressSet::verdict(const Address& address, Instant now) {
  const Held lock(mutex_);
  const Place* place = find(address);
  if (place != nullptr && place->forbidden) return Verdict::forbidden;
  if (place != nullptr && place->named && !place->ejected(now)) return Verdict::keep;
  const bool gone = place == nullptr || !place->named;
  if (!gone) return Verdict::ejected;
  if (now < retired_last_ + rules_.retire_every) return Verdict::keep_for_now;
  retired_last_ = now;
  return Verdict::gone;
}

bool AddressSet::in_use() const {
  const Held lock(mutex_);
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) { return place.open != 0; });
}

bool AddressSet::has_retiring(Instant now) const {
  const Held lock(mutex_);
  return std::any_of(places_.begin(), places_.end(), [now](const Place& place) {
    return place.open != 0 && (place.forbidden || !place.named || place.ejected(now));
  });
}

AddressSet::Counts AddressSet::count(Instant now) const {
  const Held lock(mutex_);
  Counts counts;
  for (const Place& place : places_) {
    ++(!place.named ? counts.gone : place.ejected(now) ? counts.ejected : counts.usable);
  }
  return counts;
}

std::vector<AddressSet::Info> AddressSet::all(Instant now) const {
  const Held lock(mutex_);
  std::vector<Info> all;
  for (const Place& place : places_) {
    const pool::Endpoint& used = *place.endpoint;
    all.push_back({place.address.text(), place.open, place.failures, place.ejections, place.ejected(now), !place.named,
                   used.leases(), used.total_leases(), used.response_time(),
                   static_cast<double>(used.share_against(used, rules_.slow_start, now)) / pool::Endpoint::kWhole});
  }
  return all;
}

}  // namespace carpool::proxy::net
