// LeakLog: the most recent leaks, for /leaks. Thread-safe; used only when a leak is found or ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/mutex.h"
#include "proxy/telemetry/leak_record.h"

namespace carpool::proxy {

class LeakLog {
 public:
  static constexpr std::size_t kMax = 256;  // the oldest record is dropped; the metric still counts it

  // Returns the leak's number, never 0.
  std::uint64_t add(LeakRecord leak);
  // Records that a connection reported as held for too long was given back.
  void returned(std::uint64_t id, Duration after);
  std::vector<LeakRecord> all() const;  // newest first

 private:
  mutable Mutex mutex_;
  std::deque<LeakRecord> leaks_ GUARDED_BY(mutex_);
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;
};

}  // namespace carpool::proxy
