// ConnectCost: the recent cost of a connection to an origin: the time to connect and the CPU time of the TLS handshake.
// Dials report it; requests on reused connections add it to the savings.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace carpool::proxy {

// Any loop. The numbers are independent of each other: relaxed, no partner. Concurrent reports may lose a sample.
class ConnectCost {
 public:
  void add_sample(Duration time, Duration cpu) {
    mix(time_, time.count());
    mix(cpu_, cpu.count());
  }
  Duration time() const { return Duration(time_.load(std::memory_order_relaxed)); }
  Duration cpu() const { return Duration(cpu_.load(std::memory_order_relaxed)); }

 private:
  // Moving average with weight 1/8; the first sample counts fully.
  static void mix(std::atomic<std::int64_t>& mean, std::int64_t sample) {
    const std::int64_t before = mean.load(std::memory_order_relaxed);
    mean.store(before == 0 ? sample : before + (sample - before) / 8, std::memory_order_relaxed);
  }
  std::atomic<std::int64_t> time_{0}, cpu_{0};  // nanoseconds
};

}  // namespace carpool::proxy
