// Directory: every origin's destination, made once and kept to the end, so that loops may keep plain pointers. It holds
// what spans destinations: how many there may be, and how many connections they may have together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "pool/destination.h"
#include "pool/origin.h"
#include "pool/total.h"

namespace carpool::pool {

struct DirectoryLimits {
  std::uint32_t max_origins = 1024;
  std::uint32_t max_connections = 4096;  // over all destinations; the least recently used ones give idle connections
};

class Directory final : private Evictor {
 public:
  Directory(const DirectoryLimits& limits, House& house, unsigned loops);
  ~Directory();

  // The destination of `origin`, made with `limits` if it is new. Takes a mutex: callers keep the answer.
  // Fault: origins_exhausted.
  Result<Destination*> at(const Origin& origin, const Limits& limits);
  Destination* find(const Origin& origin) const;  // null: none yet

  void sweep(Instant now);  // every destination's
  void stop(Instant now);

  std::uint32_t connections() const { return total_.taken(); }
  std::size_t size() const;
  std::vector<Destination*> all() const;  // in the order they were made

 private:
  bool evict(Instant now, const Destination* requester) override;

  House& house_;
  const unsigned loops_;
  const std::uint32_t max_origins_;
  Total total_;
  mutable std::mutex mutex_;
  std::unordered_map<Origin, Destination*> by_origin_;      // guarded by mutex_
  std::vector<std::unique_ptr<Destination>> destinations_;  // guarded by mutex_; only grows
};

}  // namespace carpool::pool
