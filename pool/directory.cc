#include "pool/directory.h"

#include <algorithm>
#include <utility>

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
    return Fault(FaultKind::origins_exhausted, Side::self, "no pool left for another origin");
  }
  destinations_.push_back(std::make_unique<Destination>(origin, limits, house_, loops_, &total_));
  destinations_.back()->touch(now);
  by_origin_.insert_or_assign(origin, destinations_.back().get());
  return destinations_.back().get();
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

namespace {
template <class Counts>
void add(Counts& to, const Counts& from) {
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
  add(reclaimed_.opened, last.opened);
  add(reclaimed_.closed, last.closed);
  add(reclaimed_.failures, last.failures);
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
  for (Destination* destination : all()) destination->sweep(now);
  if (total_.anyone_hungry()) total_.feed(now);
}

void Directory::stop(Instant now) {
  for (Destination* destination : all()) destination->stop(now);
}

// The destination that was used least recently and has something to give: what rests, else a dial that nobody needs. A
// race with its next borrow costs it a dial.
bool Directory::evict(Instant now, const Destination*) {
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
