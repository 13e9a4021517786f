// LeakLog: the last leaks that were found, for /leaks. Any thread; touched only when one is found, or ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "proxy/telemetry/leak_record.h"

namespace carpool::proxy {

class LeakLog {
 public:
  static constexpr std::size_t kMost = 256;  // older ones make room; they stay counted in the metric

  // Its number, never 0.
  std::uint64_t add(LeakRecord leak);
  // One that was held for too long was given back after all.
  void returned(std::uint64_t id, Duration after);
  std::vector<LeakRecord> all() const;  // the newest first

 private:
  mutable std::mutex mutex_;
  std::deque<LeakRecord> leaks_;  // guarded by mutex_
  std::uint64_t last_ = 0;        // guarded by mutex_
};

}  // namespace carpool::proxy
