// ExportRetry: when a batch is sent again after a failure, and when it is discarded (the OTLP specification,
// "Failures"). A pure value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/random.h"

namespace carpool::proxy {

class ExportRetry {
 public:
  explicit ExportRetry(std::uint64_t seed) : random_(seed) {}

  // The next batch begins.
  void begin() { failures_ = 0; }
  // An attempt failed. `asked`: the pause of Retry-After. Returns the pause before the next attempt; nothing: the batch
  // is given up. The pauses double, each up to a quarter shorter by chance.
  std::optional<Duration> after_failure(std::optional<Duration> asked) {
    if (++failures_ >= kMostAttempts) return std::nullopt;
    if (asked) return std::clamp(*asked, kFirstPause, kLongestPause);
    const Duration pause = kFirstPause * (std::int64_t{1} << (failures_ - 1));
    return pause - pause / 100 * static_cast<std::int64_t>(random_.below(26));
  }

  static constexpr std::uint32_t kMostAttempts = 6;
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::minutes(1);

 private:
  Random random_;
  std::uint32_t failures_ = 0;
};

}  // namespace carpool::proxy
