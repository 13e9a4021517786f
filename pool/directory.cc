#include "pool/directory.h"

#include <algorithm>
#include <new>
#include <utility>

#include "pool/refusal.h"

namespace carpool::pool {

Directory::Directory(const DirectoryLimits& limits, House& house, unsigned loops)
    : house_(house), loops_(loops), max_origins_(limits.max_origins), total_(limits.max_connections, *this) {}

Directory::~Directory() = default;

Result<Destination*> Directory::at(const Origin& origin, const Limits& limits, Instant now) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = by_origin_.find(origin); found != by_origin_.end() && !found->second->reclaimed()) {
    found->second->touch(now);
    return found->second;
  }
  if (destinations_.size() >= max_origins_) {
    return told(FaultKind::origins_exhausted, Side::self, "no pool left for another origin");
  }
  try {
    return &add(origin, limits, now);
  } catch (const std::bad_alloc&) {
    return told(FaultKind::overloaded, Side::self, "no memory for the pool of another origin");
  }
}

// Under the mutex. Throws std::bad_alloc, and then nothing changed.
Destination& Directory::add(const Origin& origin, const Limits& limits, Instant now) {
  if (destinations_.size() == destinations_.capacity()) destinations_.reserve(2 * destinations_.size() + 8);
  auto made = std::make_unique<Destination>(origin, limits, house_, loops_, &total_);
  made->touch(now);
  by_origin_.insert_or_assign(origin, made.get());
  destinations_.push_back(std::move(made));
  return *destinations_.back();
}

Destination* Directory::find(const Origin& origin) const {
  const std::scoped_lock lock(mutex_);
  const auto found = by_origin_.find(origin);
  return found == by_origin_.end() ? nullptr : found->second;
}

std::size_t Directory::size() const {
  const std::scoped_lock lock(mutex_);
  return destinations_.size();
}

std::vector<Destination*> Directory::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Destination*> all;
  all.reserve(destinations_.size());
  for (const auto& destination : destinations_) all.push_back(destination.get());
  return all;
}

// ---- the end of those that nobody uses ----

// All there are, and room for them where those go that end: what follows needs no memory. None when there is none.
std::vector<Destination*> Directory::room_for_all(std::vector<Destination*>& retired) {
  try {
    std::vector<Destination*> known = all();
    retired.reserve(known.size());
    const std::scoped_lock lock(mutex_);
    retired_.reserve(retired_.size() + known.size());
    return known;
  } catch (const std::bad_alloc&) {
    return {};  // the next time
  }
}

namespace {
template <class Counts>
void add_up(Counts& to, const Counts& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}
}  // namespace

void Directory::take_out(Destination& destination, Instant now) {
  total_.forget(destination);
  const Destination::Snapshot last = destination.snapshot(now);
  const std::scoped_lock lock(mutex_);
  const auto mine = std::find_if(destinations_.begin(), destinations_.end(),
                                 [&](const auto& one) { return one.get() == &destination; });
  CARPOOL_ASSERT(mine != destinations_.end());
  const auto found = by_origin_.find(destination.origin());
  if (found != by_origin_.end() && found->second == &destination) by_origin_.erase(found);
  retired_.push_back(std::move(*mine));
  destinations_.erase(mine);
  add_up(reclaimed_.opened, last.opened);
  add_up(reclaimed_.closed, last.closed);
  add_up(reclaimed_.failures, last.failures);
  reclaimed_.borrows += last.borrows;
  reclaimed_.restores += last.restores;
  reclaimed_.leaks += last.leaks;
  reclaimed_.created += last.created;
  ++reclaimed_count_;
}

void Directory::forget_hungry(const std::vector<Destination*>& retired) {
  for (const Destination* destination : retired) total_.forget(*destination);
}

bool Directory::bury(const std::vector<Destination*>& retired) {
  const std::unique_lock nobody_looks(looked_at_, std::try_to_lock);
  if (!nobody_looks) return false;
  const std::scoped_lock lock(mutex_);
  std::erase_if(retired_,
                [&](const auto& one) { return std::find(retired.begin(), retired.end(), one.get()) != retired.end(); });
  return true;
}

Destination::Snapshot Directory::reclaimed() const {
  const std::scoped_lock lock(mutex_);
  return reclaimed_;
}
std::uint64_t Directory::reclaimed_count() const {
  const std::scoped_lock lock(mutex_);
  return reclaimed_count_;
}

void Directory::sweep(Instant now) {
  for (std::size_t n = 0; Destination* destination = nth(n); ++n) destination->sweep(now);
  if (total_.anyone_hungry()) total_.feed(now);
}

void Directory::stop(Instant now) {
  for (std::size_t n = 0; Destination* destination = nth(n); ++n) destination->stop(now);
}

// One after the other, without a list of them that would need memory. Null: no more.
Destination* Directory::nth(std::size_t number) const {
  const std::scoped_lock lock(mutex_);
  return number < destinations_.size() ? destinations_[number].get() : nullptr;
}

// The destination that was used least recently and has something to give: what rests, else a dial that nobody needs. A
// race with its next borrow costs it a dial.
bool Directory::evict(Instant now, const Destination*) {
  try {
    return evict_from_least_used(now);
  } catch (const std::bad_alloc&) {
    return false;  // who is hungry is woken by the next place that is given back
  }
}

bool Directory::evict_from_least_used(Instant now) {
  std::vector<std::pair<Instant, Destination*>> candidates;  // their last use, read once: it moves while we sort
  for (Destination* destination : all()) candidates.emplace_back(destination->last_borrow(), destination);
  std::sort(candidates.begin(), candidates.end());
  for (const auto& [last_borrow, destination] : candidates) {
    if (destination->has_idle() && destination->evict(now)) return true;
  }
  for (const auto& [last_borrow, destination] : candidates) {
    if (destination->recall_dial(now)) return true;
  }
  return false;
}

}  // namespace carpool::pool
