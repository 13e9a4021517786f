#include "pool/directory/directory.h"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "pool/core/entry_index.h"
#include "pool/destination/rejection.h"

namespace carpool::pool {

Directory::Directory(const DirectoryLimits& limits, Environment& environment, unsigned loops)
    : environment_(environment), loops_(loops), max_origins_(limits.max_origins), budget_(limits.max_connections) {}

Directory::~Directory() = default;

Result<Destination*> Directory::at(const Origin& origin, const Limits& limits, Instant now, Listing listing) {
  const Held lock(mutex_);
  if (const auto found = by_origin_.find(origin); found != by_origin_.end() && !found->second->reclaimed()) {
    found->second->touch(now);
    return found->second;
  }
  if (!has_place(listing)) {
    return make_fault(FaultKind::origins_exhausted, Side::self, "no pool left for another origin");
  }
  if (EntryIndex::process().full()) {
    return make_fault(FaultKind::origins_exhausted, Side::self,
                      "no numbers left for the connections of another origin");
  }
  try {
    return &add(origin, limits, now, listing);
  } catch (const std::bad_alloc&) {
    return make_fault(FaultKind::overloaded, Side::self, "no memory for the pool of another origin");
  }
}

// Returns true if a place is free. Configured origins always have one: their places are reserved.
bool Directory::has_place(Listing listing) const {
  return listing == Listing::configured || table_.unlisted() < max_origins_ - std::min(kept_, max_origins_);
}

// Throws std::bad_alloc; nothing changes then.
Destination& Directory::add(const Origin& origin, const Limits& limits, Instant now, Listing listing) {
  auto made = std::make_unique<Destination>(origin, limits, environment_, loops_, &budget_, now);
  made->touch(now);
  const auto [mine, fresh] = by_origin_.try_emplace(origin, nullptr);
  try {
    return *(mine->second = &table_.add(std::move(made), listing));
  } catch (const std::bad_alloc&) {
    if (fresh) by_origin_.erase(mine);
    throw;
  }
}

void Directory::keep_places(std::uint32_t configured) {
  const Held lock(mutex_);
  kept_ = configured;
}
void Directory::set_listing(const Destination& destination, Listing listing) {
  const Held lock(mutex_);
  table_.set_listing(destination, listing);
}

Destination* Directory::find(const Origin& origin) const {
  const Held lock(mutex_);
  const auto found = by_origin_.find(origin);
  return found == by_origin_.end() ? nullptr : found->second;
}

std::size_t Directory::size() const {
  const Held lock(mutex_);
  return table_.size();
}

std::vector<Destination*> Directory::all() const {
  const Held lock(mutex_);
  std::vector<Destination*> all;
  all.reserve(table_.size() + table_.leaving());
  for (std::uint64_t number = 0; Destination* destination = table_.next(number);) all.push_back(destination);
  return all;
}

// ---- removal of unused destinations ----

// Returns all destinations and reserves room in `retired`, so that the caller need not allocate. Empty if out of
// memory.
std::vector<Destination*> Directory::room_for_all(std::vector<Destination*>& retired) {
  try {
    std::vector<Destination*> known = all();
    retired.reserve(known.size());
    const Held lock(mutex_);
    retired_.reserve(retired_.size() + known.size());
    return known;
  } catch (const std::bad_alloc&) {
    return {};  // retried later
  }
}

namespace {
template <class Counts>
void add_up(Counts& to, const Counts& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

void add_totals(Destination::Snapshot& to, const Destination::Snapshot& last) {
  add_up(to.opened, last.opened);
  add_up(to.closed, last.closed);
  add_up(to.failures, last.failures);
  to.borrows += last.borrows;
  to.restores += last.restores;
  to.leaks += last.leaks;
  to.created += last.created;
  to.undialed += last.undialed;
  to.cool_downs += last.cool_downs;
  if (!last.auto_size) return;
  if (!to.auto_size) to.auto_size.emplace();
  to.auto_size->history.add_counts(last.auto_size->history);
}
}  // namespace

// The counters of an origin whose destination was replaced must not fall while its successor counts.
Destination::Snapshot& Directory::totals_for(const Destination& destination, bool replaced) {
  const auto found = replaced_.find(destination.label());
  if (found != replaced_.end()) return found->second;
  if (!replaced || replaced_.size() >= max_origins_) return reclaimed_;
  try {
    return replaced_[destination.label()];
  } catch (const std::bad_alloc&) {
    return reclaimed_;
  }
}

void Directory::unlink(Destination& destination, Instant now) {
  destination.leave_budget();
  const Destination::Snapshot last = destination.snapshot(now);
  const bool replaced = destination.limits().replaced;
  const Held lock(mutex_);
  const auto found = by_origin_.find(destination.origin());
  if (found != by_origin_.end() && found->second == &destination) by_origin_.erase(found);
  retired_.push_back(table_.take(destination));
  add_totals(totals_for(destination, replaced), last);
  ++reclaimed_count_;
}

// A retired destination stays in the totals until unlink_idle(). Bounded number of attempts.
bool Directory::make_room(Instant now) {
  constexpr int kTries = 16;
  constexpr std::uint32_t kMinLeaving = 128;  // some 1.3 MiB
  for (int n = 0; n < kTries; ++n) {
    Destination* candidate = nullptr;
    {
      const Held lock(mutex_);
      // Destinations that leave still occupy memory: a burst of names must not double it.
      if (table_.leaving() + retired_.size() >= std::max(kMinLeaving, max_origins_ / 2)) return false;
      candidate = table_.least_recent(now);
    }
    if (candidate == nullptr) return false;
    if (!candidate->reclaim(now, Duration::min())) continue;
    const Held lock(mutex_);
    table_.mark_leaving(*candidate);
    ++evicted_count_;
    return true;
  }
  return false;
}

void Directory::forget_starved(const std::vector<Destination*>& retired) {
  for (Destination* destination : retired) destination->leave_budget();
}

bool Directory::destroy(std::vector<Destination*> retired) {
  std::sort(retired.begin(), retired.end(), std::less<>());
  const std::unique_lock exclusive(visiting_mutex_, std::try_to_lock);
  if (!exclusive) return false;
  const Held lock(mutex_);
  std::erase_if(retired_, [&](const auto& one) {
    return std::binary_search(retired.begin(), retired.end(), one.get(), std::less<>());
  });
  return true;
}

std::map<std::string, Destination::Snapshot> Directory::replaced() const {
  const Held lock(mutex_);
  return replaced_;
}
Destination::Snapshot Directory::reclaimed() const {
  const Held lock(mutex_);
  return reclaimed_;
}
std::uint64_t Directory::evicted_count() const {
  const Held lock(mutex_);
  return evicted_count_;
}
std::uint64_t Directory::reclaimed_count() const {
  const Held lock(mutex_);
  return reclaimed_count_;
}

void Directory::sweep(Instant now) {
  for (std::uint64_t number = 0; Destination* destination = next(number);) destination->sweep(now);
  budget_.release_for_starved(now);
}

void Directory::stop(Instant now) {
  for (std::uint64_t number = 0; Destination* destination = next(number);) destination->stop(now);
}

// Iterates without a list, which would need memory. Returns null at the end.
Destination* Directory::next(std::uint64_t& number) const {
  const Held lock(mutex_);
  return table_.next(number);
}

}  // namespace carpool::pool
