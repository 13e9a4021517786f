// Directory: every origin's destination. Loops keep plain pointers to them: one that nobody uses any more leaves the
// directory first (retire) and ends when nobody can know it any more (bury), which its caller finds out. The directory
// holds what spans destinations: how many there may be, and how many connections they may have together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "pool/destination/destination.h"
#include "pool/destination/snapshot.h"
#include "pool/directory/roster.h"
#include "pool/origin.h"
#include "pool/queue/connection_budget.h"

namespace carpool::pool {

struct DirectoryLimits {
  std::uint32_t max_origins = 1024;
  std::uint32_t max_connections = 4096;  // over all destinations; the least recently used ones give idle connections
};

class Directory final {
 public:
  Directory(const DirectoryLimits& limits, Environment& environment, unsigned loops);
  ~Directory();

  // The destination of `origin`, made with `limits` if it is new. Takes a mutex: callers keep the answer.
  // Fault: origins_exhausted, overloaded (no memory).
  // Guests share the places of max_origins that are not kept for configured origins, whether these have a pool or not.
  Result<Destination*> at(const Origin& origin, const Limits& limits, Instant now = Clock::now(),
                          Standing standing = Standing::guest);
  // From now on so many places are kept for configured origins, and whose pool `destination` is.
  void keep_places(std::uint32_t configured);
  void set_standing(const Destination& destination, Standing standing);
  // Ends the pool at rest of the guest that was used least recently, so that another origin finds a place. True: one
  // ended. Must be called on a loop, without a lock: the place under the total that it gives back may begin a dial.
  bool make_room(Instant now);
  Destination* find(const Origin& origin) const;  // null: none yet

  // Takes those out for which `wanted` is false and that reclaim(now, unused) ends; they stay in memory. None while
  // somebody looks through the pools: what is counted moves from them to reclaimed().
  template <class Wanted>
  std::vector<Destination*> unlink_idle(Instant now, Duration unused, Wanted wanted) {
    std::vector<Destination*> retired;
    const std::unique_lock nobody_looks(looked_at_, std::try_to_lock);
    if (!nobody_looks) return retired;
    for (Destination* destination : room_for_all(retired)) {
      const bool ended = destination->reclaimed();  // by make_room()
      if (!ended && (!destination->unused_for(unused, now) || wanted(*destination))) continue;
      if (!ended && !destination->reclaim(now, unused)) continue;
      take_out(*destination, now);
      retired.push_back(destination);
    }
    return retired;
  }
  void forget_hungry(const std::vector<Destination*>& retired);
  // Destroys them. False: somebody looks through the pools at this moment; later.
  bool destroy(const std::vector<Destination*>& retired);
  // Who is no loop and looks through the pools holds this meanwhile.
  std::shared_lock<std::shared_mutex> hold() const { return std::shared_lock(looked_at_); }
  // What all that were retired had counted, so that sums never go down.
  Destination::Snapshot reclaimed() const;
  std::uint64_t reclaimed_count() const;
  std::uint64_t evicted_count() const;  // of those, by make_room()
  std::uint32_t max_origins() const { return max_origins_; }

  void sweep(Instant now);  // every destination's
  void stop(Instant now);

  // Closes an idle connection, about the one whose destination was used least recently, or cancels a dial that nobody
  // needs. False: there is neither.
  bool close_one(Instant now) { return budget_.free_one(now); }

  std::uint32_t connections() const { return budget_.taken(); }
  std::uint32_t starved() const { return budget_.starved(); }  // destinations that lack a connection under the total
  std::size_t size() const;
  std::vector<Destination*> all() const;  // in the order they were made

 private:
  Destination& add(const Origin& origin, const Limits& limits, Instant now, Standing standing);
  bool has_place(Standing standing) const;
  Destination* next(std::uint64_t& number) const;
  std::vector<Destination*> room_for_all(std::vector<Destination*>& retired);
  void take_out(Destination& destination, Instant now);

  Environment& environment_;
  const unsigned loops_;
  const std::uint32_t max_origins_;
  ConnectionBudget budget_;
  mutable std::mutex mutex_;
  std::unordered_map<Origin, Destination*> by_origin_;  // guarded by mutex_
  Roster roster_;                                       // guarded by mutex_, as all below but the last
  std::uint32_t kept_ = 0;                              // places for configured origins
  std::uint64_t evicted_count_ = 0;
  std::vector<std::unique_ptr<Destination>> retired_;
  Destination::Snapshot reclaimed_;
  std::uint64_t reclaimed_count_ = 0;
  mutable std::shared_mutex looked_at_;
};

}  // namespace carpool::pool
