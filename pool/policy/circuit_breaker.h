// CircuitBreaker: limits the concurrent dials to one origin.
//
//   closed     a connection is open, or a dial succeeded within kFresh: no limit but the cap.
//   unknown    nothing is open: kAtOnce dials. The first success closes the circuit: a cold burst pays one round trip.
//   half open  the last dial failed: one probe decides for all waiters. While it is unanswered, another probe
//              starts every kProbeInterval, so that an origin that is back is found even if a SYN was lost.
//   open       kAtOnce dials in a row failed within less than a second and none is in progress: one dial each
//              kRecoveryInterval; requests meanwhile fail with the error of the last dial.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace carpool::pool {

class CircuitBreaker {
 public:
  static constexpr std::uint32_t kAtOnce = 8;
  static constexpr std::uint32_t kNoLimit = UINT32_MAX;
  static constexpr Duration kRecoveryInterval = std::chrono::milliseconds(100);
  static constexpr Duration kProbeInterval = std::chrono::seconds(1);
  static constexpr Duration kFresh = std::chrono::seconds(1);  // how long a success counts as an open connection

  // Returns how many more dials may start. `established`: a connection is open, whatever it is used for.
  std::uint32_t allowed_dials(std::uint32_t dials, bool established, Instant now) const {
    if (failed_) return now >= opens_at(dials) ? 1 : 0;
    if (established || now < known_until_) return kNoLimit;
    return dials < kAtOnce ? kAtOnce - dials : 0;
  }
  // Returns when the next dial may start after a failed one; kNever: when a dial in progress ends.
  Instant opens_at(std::uint32_t dials) const {
    if (dials == 0) return spent_until_ - (kAtOnce - 1) * kRecoveryInterval;
    return dials < kAtOnce ? began_ + kProbeInterval : kNever;
  }
  bool last_failed() const { return failed_; }

  void began(Instant now) { began_ = now; }
  void succeeded(Instant now) {
    failed_ = false;
    known_until_ = now + kFresh;
    spent_until_ = now;
  }
  void failed(Instant now) {
    failed_ = true;
    // Any number of dials may fail together: while the circuit was closed, no limit applied.
    spent_until_ = std::min(std::max(spent_until_, now) + kRecoveryInterval, now + kAtOnce * kRecoveryInterval);
  }

 private:
  bool failed_ = false;
  Instant began_{}, known_until_{};
  Instant spent_until_{};  // each failure adds one kRecoveryInterval, at most kAtOnce of them
};

}  // namespace carpool::pool
