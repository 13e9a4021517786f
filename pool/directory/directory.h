// Directory: the destinations of all origins. Loops keep plain pointers to them: an unused destination is first removed
// from the directory (unlink_idle) and destroyed (destroy) once the caller knows that no pointer to it is left. Also
// holds the limits that span destinations: their number and the total of their connections.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "pool/core/audit_report.h"
#include "pool/destination/destination.h"
#include "pool/destination/snapshot.h"
#include "pool/directory/destination_table.h"
#include "pool/origin.h"
#include "pool/queue/connection_budget.h"

namespace carpool::pool {

struct DirectoryLimits {
  std::uint32_t max_origins = 1024;
  // over all destinations; idle connections of the least recently used ones are closed for others
  std::uint32_t max_connections = 4096;
};

class Directory final {
 public:
  Directory(const DirectoryLimits& limits, Environment& environment, unsigned loops);
  ~Directory();

  // Returns the destination of `origin`, created with `limits` if it is new. Takes a mutex: callers keep the result.
  // Faults: origins_exhausted, overloaded (out of memory).
  // Unlisted destinations share the places of max_origins that are not reserved for configured origins, used or not.
  Result<Destination*> at(const Origin& origin, const Limits& limits, Instant now = Clock::now(),
                          Listing listing = Listing::unlisted) EXCLUDES(mutex_);
  // Sets the number of places kept for configured origins, and whether `destination` counts as configured.
  void keep_places(std::uint32_t configured) EXCLUDES(mutex_);
  void set_listing(const Destination& destination, Listing listing) EXCLUDES(mutex_);
  // Retires the least recently used unlisted destination that has no lease, waiter or dial, to make a place for another
  // origin; its idle connections close.
  // Returns true if one was retired. Must be called on a loop, without a destination's mutex: the budget slots that it
  // frees may start a dial.
  bool make_room(Instant now) EXCLUDES(mutex_);
  Destination* find(const Origin& origin) const EXCLUDES(mutex_);  // null: none yet

  // Removes the destinations for which `wanted` returns false and reclaim(now, unused) succeeds; they stay in memory.
  // Removes none during an iteration over the pools. The removed destinations' totals move to replaced() or
  // reclaimed().
  template <class Wanted>
  std::vector<Destination*> unlink_idle(Instant now, Duration unused, Wanted wanted) {
    std::vector<Destination*> retired;
    const std::unique_lock exclusive(visiting_mutex_, std::try_to_lock);
    if (!exclusive) return retired;
    for (Destination* destination : room_for_all(retired)) {
      const bool ended = destination->reclaimed();  // by make_room()
      if (!ended && (!destination->unused_for(unused, now) || wanted(*destination))) continue;
      if (!ended && !destination->reclaim(now, unused)) continue;
      unlink(*destination, now);
      retired.push_back(destination);
    }
    return retired;
  }
  void forget_starved(const std::vector<Destination*>& retired);
  // Destroys the destinations. Returns false during an iteration over the pools: retry later.
  bool destroy(std::vector<Destination*> retired) EXCLUDES(mutex_);
  // Returns a lock that a thread other than a loop holds during an iteration over the pools.
  std::shared_lock<std::shared_mutex> hold() const { return std::shared_lock(visiting_mutex_); }
  // Return the totals of the retired destinations, so that sums never decrease: `replaced` those of origins that have
  // another destination instead (Limits::replaced), by label, `reclaimed` those of all others.
  std::map<std::string, Destination::Snapshot> replaced() const EXCLUDES(mutex_);
  Destination::Snapshot reclaimed() const EXCLUDES(mutex_);
  std::uint64_t reclaimed_count() const EXCLUDES(mutex_);
  std::uint64_t evicted_count() const EXCLUDES(mutex_);  // those retired by make_room()
  std::uint32_t max_origins() const { return max_origins_; }

  void sweep(Instant now) EXCLUDES(mutex_);  // every destination
  void stop(Instant now) EXCLUDES(mutex_);

  // Closes an idle connection, approximately of the least recently used destination, or cancels an unneeded dial.
  // Returns false if there is neither.
  bool close_one(Instant now) { return budget_.free_one(now); }

  std::uint32_t connections() const { return budget_.taken(); }
  std::uint32_t starved() const { return budget_.starved(); }  // destinations waiting for a slot of the budget
  // Recounts. No call into the pool may be in progress on any thread.
  AuditReport audit() const EXCLUDES(mutex_);
  std::size_t size() const EXCLUDES(mutex_);
  std::vector<Destination*> all() const EXCLUDES(mutex_);  // in order of creation

 private:
  Destination& add(const Origin& origin, const Limits& limits, Instant now, Listing listing) REQUIRES(mutex_);
  bool has_place(Listing listing) const REQUIRES(mutex_);
  Destination* next(std::uint64_t& number) const EXCLUDES(mutex_);
  std::vector<Destination*> room_for_all(std::vector<Destination*>& retired) EXCLUDES(mutex_);
  void unlink(Destination& destination, Instant now) EXCLUDES(mutex_);
  std::vector<const Destination*> retired() const EXCLUDES(mutex_);
  Destination::Snapshot& totals_for(const Destination& destination, bool replaced) REQUIRES(mutex_);

  Environment& environment_;
  const unsigned loops_;
  const std::uint32_t max_origins_;
  ConnectionBudget budget_;
  mutable carpool::Mutex mutex_;
  std::unordered_map<Origin, Destination*> by_origin_ GUARDED_BY(mutex_);
  DestinationTable table_ GUARDED_BY(mutex_);
  std::uint32_t kept_ GUARDED_BY(mutex_) = 0;  // places kept for configured origins
  std::uint64_t evicted_count_ GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Destination>> retired_ GUARDED_BY(mutex_);
  Destination::Snapshot reclaimed_ GUARDED_BY(mutex_);
  std::map<std::string, Destination::Snapshot> replaced_ GUARDED_BY(mutex_);
  std::uint64_t reclaimed_count_ GUARDED_BY(mutex_) = 0;
  mutable std::shared_mutex visiting_mutex_;  // keeps the destinations that an iteration visits; guards no member
};

}  // namespace carpool::pool
