#include "pool/policy/size_controller.h"

#include <algorithm>
#include <utility>

namespace carpool::pool {

namespace {
constexpr std::uint64_t kRefusedOf = 20;  // one refused request of this many shrinks the size
constexpr std::uint64_t kLateOf = 100;    // one late request of this many lets it grow
constexpr double kMaxShrink = 0.5;        // one step of the gradient
constexpr double kSmallestShrink = 0.9;   // likewise
constexpr double kGoal = 1.25;            // of the lowest median, towards which the gradient shrinks
constexpr Duration kMaxSettling = std::chrono::seconds(10);

double ratio(Duration one, Duration other) {
  return static_cast<double>(one.count()) / static_cast<double>(std::max<Duration::rep>(other.count(), 1));
}

std::uint32_t part_of(std::uint32_t count, double part) {
  return static_cast<std::uint32_t>(static_cast<double>(count) * part);
}
}  // namespace

void SizeController::bounds(std::uint32_t min_size, std::uint32_t max_size, std::uint32_t size) {
  min_size_ = min_size;
  max_size_ = std::max(min_size, max_size);
  const std::uint32_t within = std::clamp(size, min_size_, max_size_);
  if (within != size_) growth_ = shrink_ = std::nullopt;
  size_ = within;
}

Duration SizeController::tolerable_wait() const {
  return std::max<Duration>(lowest_ / 10, std::chrono::milliseconds(1));
}

bool SizeController::enough(std::uint64_t responses, Instant begun, Instant now) {
  return now - begun >= kLongest || (responses >= kEnough && now - begun >= kShortest);
}

std::optional<SizeChange> SizeController::update(const LoadSample& seen, Instant now) {
  if (growth_ && seen.refused * kLateOf >= seen.responses + seen.refused && seen.refused != 0)
    return evaluate_growth(seen, now);
  if (auto made = shrink_as_refused(seen, now)) return made;
  if (auto made = shrink_to_accepted(seen, now)) return made;
  if (seen.responses >= kFewest) {
    if (auto made = evaluate(seen, now)) return made;
  }
  return grow(seen, now);
}

// ---- shrinking ----

std::optional<SizeChange> SizeController::shrink_as_refused(const LoadSample& seen, Instant now) {
  if (seen.refused < 2 || seen.refused * kRefusedOf < seen.responses + seen.refused) return std::nullopt;
  growth_ = shrink_ = std::nullopt;
  hold_growth(now);
  const std::uint32_t used = seen.at_size ? size_ : std::clamp(seen.busy, 1U, size_);
  return change(std::min(size_ - 1, part_of(used, 0.75)), SizeReason::refused, seen, now);
}

// An origin without any connection is down: the size is not the cause.
std::optional<SizeChange> SizeController::shrink_to_accepted(const LoadSample& seen, Instant now) {
  if (seen.dials_refused == 0 || seen.responses == 0 || seen.open == 0 || seen.open >= size_) return std::nullopt;
  growth_ = shrink_ = std::nullopt;
  hold_growth(now);
  return change(seen.open, SizeReason::dials, seen, now);
}

// ---- by the time to a response ----

bool SizeController::slow(Duration median) const {
  return lowest_ != Duration::zero() && ratio(median, lowest_) > kTolerance;
}

std::optional<SizeChange> SizeController::evaluate(const LoadSample& seen, Instant now) {
  if (shrink_) return evaluate_shrink(seen, now);
  lowest_ = lowest_ == Duration::zero() ? seen.median : std::min(lowest_, seen.median);
  if (!in_use(seen)) return std::nullopt;  // the size was not the limit
  if (growth_) return evaluate_growth(seen, now);
  return follow_gradient(seen, now);
}

std::optional<SizeChange> SizeController::evaluate_growth(const LoadSample& seen, Instant now) {
  const Trial trial = *std::exchange(growth_, std::nullopt);
  const bool refused = seen.refused * kLateOf >= seen.responses + seen.refused && seen.refused != 0;
  const double rose = ratio(seen.median, trial.median), most = 1 + (trial.ratio - 1) / 2;
  if (!refused && rose <= most && !slow(seen.median)) {
    step_ = std::min(step_ * 2, kMaxStep);
    hold_ = std::max(hold_ / 2, kShortestHold);
    grows_at_ = now;
    return std::nullopt;
  }
  hold_growth(now);
  return change(trial.from, refused ? SizeReason::refused : SizeReason::latency, seen, now);
}

// Judges a shrink: if the size was the cause, the median falls in proportion to it; half of that suffices.
std::optional<SizeChange> SizeController::evaluate_shrink(const LoadSample& seen, Instant now) {
  const Trial trial = *std::exchange(shrink_, std::nullopt);
  if (ratio(seen.median, trial.median) <= (1 + trial.ratio) / 2) {
    trust_ = kShortestHold;
    lowest_ = std::min(lowest_, seen.median);
    return std::nullopt;
  }
  lowest_ = seen.median;
  shrinks_at_ = now + trust_;
  trust_ = std::min(trust_ * 2, kMaxTrust);
  return change(trial.from, SizeReason::restored, seen, now);
}

std::optional<SizeChange> SizeController::follow_gradient(const LoadSample& seen, Instant now) {
  if (!slow(seen.median) || now < shrinks_at_) return std::nullopt;
  const std::uint32_t used = seen.at_size ? size_ : std::clamp(seen.busy, 1U, size_);
  const double part = std::clamp(kGoal / ratio(seen.median, lowest_), kMaxShrink, kSmallestShrink);
  const std::uint32_t to = std::max(min_size_, std::min(size_ - 1, part_of(used, part)));
  if (to >= used) return std::nullopt;  // the minimum is in use
  shrink_ = Trial{size_, static_cast<double>(to) / used, seen.median};
  hold_growth(now);
  return change(to, SizeReason::latency, seen, now);
}

// ---- growing ----

void SizeController::hold_growth(Instant now) {
  step_ = std::max(step_ / 2, kSmallestStep);
  grows_at_ = now + hold_;
  hold_ = std::min(hold_ * 2, kMaxHold);
}

// The size does not grow for an origin that responded before and leaves its requests unanswered now.
std::optional<SizeChange> SizeController::grow(const LoadSample& seen, Instant now) {
  if (growth_ || shrink_ || !seen.at_size || seen.late == 0 || now < grows_at_) return std::nullopt;
  if (seen.late * kLateOf < seen.responses || slow(seen.median)) return std::nullopt;
  if (seen.responses == 0 && lowest_ != Duration::zero() && !seen.all_answered) return std::nullopt;
  const std::uint32_t from = size_;
  const auto made = change(size_ + std::max(1U, part_of(size_, step_)), SizeReason::waits, seen, now);
  if (made && seen.responses >= kFewest) growth_ = Trial{from, static_cast<double>(size_) / from, seen.median};
  return made;
}

std::optional<SizeChange> SizeController::change(std::uint32_t to, SizeReason reason, const LoadSample& seen,
                                                 Instant now) {
  to = std::clamp(to, min_size_, max_size_);
  if (to == size_) return std::nullopt;
  settles_at_ = now + std::min<Duration>(std::max<Duration>(2 * seen.median, kShortest), kMaxSettling);
  return SizeChange{now, std::exchange(size_, to), to, reason, seen, lowest_};
}

}  // namespace carpool::pool
