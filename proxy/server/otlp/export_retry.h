// ExportRetry: decides when a batch is sent again after a failure, and when it is discarded (the OTLP specification,
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

  // Must be called when the next batch begins.
  void begin() { failures_ = 0; }
  // Reports a failed attempt. `asked`: the pause of Retry-After. Returns the pause before the next attempt, or nothing
  // if the batch must be discarded. Each pause is twice the previous one, minus a random part of up to a quarter.
  std::optional<Duration> after_failure(std::optional<Duration> asked) {
    if (++failures_ >= kMaxAttempts) return std::nullopt;
    if (asked) return std::clamp(*asked, kFirstPause, kMaxPause);
    const Duration pause = kFirstPause * (std::int64_t{1} << (failures_ - 1));
    return pause - pause / 100 * static_cast<std::int64_t>(random_.below(26));
  }

  static constexpr std::uint32_t kMaxAttempts = 6;
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kMaxPause = std::chrono::minutes(1);

 private:
  Random random_;
  std::uint32_t failures_ = 0;
};

}  // namespace carpool::proxy
