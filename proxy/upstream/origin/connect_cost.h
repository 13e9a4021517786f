// ConnectCost: what a connection to an origin costs, of late: the time until it is there, and the CPU time of its TLS
// handshake. Told by dials, asked by requests that needed none, which saved that much.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace carpool::proxy {

// Any loop. Each number stands alone: relaxed, no partner. Two loops that tell at once may lose one sample.
class ConnectCost {
 public:
  void add_sample(Duration time, Duration cpu) {
    mix(time_, time.count());
    mix(cpu_, cpu.count());
  }
  Duration time() const { return Duration(time_.load(std::memory_order_relaxed)); }
  Duration cpu() const { return Duration(cpu_.load(std::memory_order_relaxed)); }

 private:
  // An eighth of each new one; the first counts whole.
  static void mix(std::atomic<std::int64_t>& mean, std::int64_t sample) {
    const std::int64_t before = mean.load(std::memory_order_relaxed);
    mean.store(before == 0 ? sample : before + (sample - before) / 8, std::memory_order_relaxed);
  }
  std::atomic<std::int64_t> time_{0}, cpu_{0};  // nanoseconds
};

}  // namespace carpool::proxy
