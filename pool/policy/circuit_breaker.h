// CircuitBreaker: how many dials of one origin may be under way at once. Guarded by its destination's mutex.
//
//   closed     a connection is open, or a dial succeeded a moment ago: no limit but the cap.
//   unknown    nothing is open: kAtOnce. The first success closes the circuit, so a cold burst pays one round trip.
//   half open  the last dial failed: one probe decides for all who wait. A probe that gets no answer is joined by
//              another one each kPatience, so that an origin that is back is found though its first SYN was lost.
//   open       kAtOnce dials in a row failed within less than a second and none is under way: one more each kForgive;
//              whoever asks meanwhile is told what the last dial met.
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
  static constexpr Duration kForgive = std::chrono::milliseconds(100);
  static constexpr Duration kPatience = std::chrono::seconds(1);
  static constexpr Duration kFresh = std::chrono::seconds(1);  // a success stands for an open connection so long

  // How many more dials may begin. `established`: a connection is open, whatever it is used for.
  std::uint32_t room(std::uint32_t dials, bool established, Instant now) const {
    if (failed_) return now >= opens_at(dials) ? 1 : 0;
    if (established || now < known_until_) return kNoLimit;
    return dials < kAtOnce ? kAtOnce - dials : 0;
  }
  // While the last dial failed: when the next one may begin; kNever: an end of a dial decides.
  Instant opens_at(std::uint32_t dials) const {
    if (dials == 0) return spent_until_ - (kAtOnce - 1) * kForgive;
    return dials < kAtOnce ? began_ + kPatience : kNever;
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
    spent_until_ = std::max(spent_until_, now) + kForgive;
  }

 private:
  bool failed_ = false;
  Instant began_{}, known_until_{};
  Instant spent_until_{};  // each failure spends one kForgive of time to come, kAtOnce of them at most
};

}  // namespace carpool::pool
