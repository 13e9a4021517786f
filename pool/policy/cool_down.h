// CoolDown: the pause after a response 429 or 503 with Retry-After. Nothing is lent until its end. After that one
// lease, the trial, is lent before all others: its response ends the pause or renews it. Without a response, or if none
// arrives in kTrialTime, the next lease is a trial too; the response to any of them counts.
//
//   off -> cooling -> trial_due <-> trial_out -> off
//             ^-----------+------------+
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace carpool::pool {

// Guarded by the destination's mutex.
class CoolDown {
 public:
  static constexpr Duration kTrialTime = std::chrono::seconds(5);

  bool active() const { return phase_ != Phase::off; }
  bool lends() const { return phase_ == Phase::off || phase_ == Phase::trial_due; }
  bool trial_due() const { return phase_ == Phase::trial_due; }
  bool cooling() const { return phase_ == Phase::cooling; }
  bool holds(Instant now) const { return phase_ == Phase::cooling && now < until_; }
  Instant since() const { return since_; }
  Instant until() const { return until_; }
  std::uint16_t status() const { return status_; }

  // Begins or renews the pause. Returns true if it does; false: a pause is in progress, and the response to a request
  // that was in flight moves its end, never to an earlier time.
  bool begin(Instant now, Instant until, std::uint16_t status) {
    const bool held = phase_ == Phase::cooling;
    if (!active()) since_ = now;
    until_ = held ? std::max(until_, until) : until;
    status_ = status;
    trials_ = 0;
    phase_ = Phase::cooling;
    return !held;
  }
  // Updates the phase. The time of a trial counts from the first update() after its begin: until then nothing waits for
  // it.
  void update(Instant now) {
    if (phase_ == Phase::cooling && now >= until_) phase_ = Phase::trial_due;
    if (phase_ != Phase::trial_out) return;
    if (trial_ends_ == kNever) trial_ends_ = now + kTrialTime;
    if (now >= trial_ends_) phase_ = Phase::trial_due;
  }
  // Returns when update() has the next change to make without a call from outside; kNever: none.
  Instant next() const { return phase_ == Phase::cooling ? until_ : phase_ == Phase::trial_out ? trial_ends_ : kNever; }
  // Begins a trial; must be called only while trial_due(). Returns its number, never 0.
  std::uint32_t begin_trial() {
    phase_ = Phase::trial_out;
    trial_ends_ = kNever;
    last_ += last_ == UINT32_MAX ? 2 : 1;
    ++trials_;
    return last_;
  }
  // Called when the lease of this trial ended without a response.
  void trial_over(std::uint32_t trial) {
    if (phase_ == Phase::trial_out && trial == last_) phase_ = Phase::trial_due;
  }
  // Called when the origin responded to a trial of this pause and requested no other pause. Returns true if that ends
  // the pause.
  bool passed(std::uint32_t trial) {
    if (phase_ != Phase::trial_out && phase_ != Phase::trial_due) return false;
    if (last_ - trial >= trials_) return false;  // of an earlier pause
    phase_ = Phase::off;
    return true;
  }
  // Replaces this pause, if there is one, by that of another destination for the same origin. Its trial belongs to that
  // destination, so a trial is due here.
  void take_over(const CoolDown& other) {
    phase_ = other.active() && !other.cooling() ? Phase::trial_due : other.phase_;
    status_ = other.status_;
    since_ = other.since_;
    until_ = other.until_;
    trials_ = 0;
  }
  bool end() {
    const bool was = active();
    phase_ = Phase::off;
    return was;
  }

 private:
  enum class Phase : std::uint8_t { off, cooling, trial_due, trial_out };
  Phase phase_ = Phase::off;
  std::uint16_t status_ = 0;
  std::uint32_t last_ = 0;    // trial
  std::uint32_t trials_ = 0;  // of this pause
  Instant since_{}, until_{}, trial_ends_ = kNever;
};

}  // namespace carpool::pool
