#include "pool/directory.h"

#include <algorithm>
#include <utility>

namespace carpool::pool {

Directory::Directory(const DirectoryLimits& limits, House& house, unsigned loops)
    : house_(house), loops_(loops), max_origins_(limits.max_origins), total_(limits.max_connections, *this) {}

Directory::~Directory() = default;

Result<Destination*> Directory::at(const Origin& origin, const Limits& limits) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = by_origin_.find(origin); found != by_origin_.end()) return found->second;
  if (destinations_.size() >= max_origins_) {
    return Fault(FaultKind::origins_exhausted, Side::self, "no pool left for another origin");
  }
  destinations_.push_back(std::make_unique<Destination>(origin, limits, house_, loops_, &total_));
  by_origin_.emplace(origin, destinations_.back().get());
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

void Directory::sweep(Instant now) {
  for (Destination* destination : all()) destination->sweep(now);
  if (total_.anyone_hungry()) total_.feed(now);
}

void Directory::stop(Instant now) {
  for (Destination* destination : all()) destination->stop(now);
}

// The destination that was used least recently and has something to give. A race with its next borrow costs it a dial.
bool Directory::evict(Instant now, const Destination*) {
  std::vector<std::pair<Instant, Destination*>> candidates;  // their last use, read once: it moves while we sort
  for (Destination* destination : all()) candidates.emplace_back(destination->last_borrow(), destination);
  std::sort(candidates.begin(), candidates.end());
  for (const auto& [last_borrow, destination] : candidates) {
    if (destination->has_idle() && destination->evict(now)) return true;
  }
  return false;
}

}  // namespace carpool::pool
