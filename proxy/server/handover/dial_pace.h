// DialPace: the number of connections that a starting process may dial in each step, so that over all steps they are no
// more than a rate permits. A step may be shorter than the time for one connection.
#pragma once

#include <chrono>
#include <cstdint>

namespace carpool::proxy {

class DialPace {
 public:
  // `per_second`: the rate. The first step permits at least one.
  explicit DialPace(std::uint32_t per_second) : rate_(per_second) {}

  // Returns the number of dials that a step of this length permits. What remains of a dial counts for the next step.
  std::uint32_t step(std::chrono::milliseconds length) {
    owed_ += std::uint64_t{rate_} * static_cast<std::uint64_t>(length.count());
    const std::uint64_t dials = owed_ / kWhole;
    owed_ %= kWhole;
    return static_cast<std::uint32_t>(dials);
  }

 private:
  static constexpr std::uint64_t kWhole = 1000;  // one dial, in dials of a second per millisecond
  std::uint32_t rate_ = 0;
  std::uint64_t owed_ = kWhole - 1;
};

}  // namespace carpool::proxy
