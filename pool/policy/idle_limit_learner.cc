#include "pool/policy/idle_limit_learner.h"

#include <utility>

namespace carpool::pool {

// ---- connections closed by the origin ----

void IdleLimitLearner::closed_by_origin(Duration idle_for, bool left, Instant now) {
  evaluate(now);
  if (left && limit_ && idle_for > *limit_ + *limit_ / 10) return raise(idle_for);
  note({idle_for, true}, now);
}

void IdleLimitLearner::reset_by_origin(Duration idle_for, Instant now) {
  evaluate(now);
  note({idle_for, false}, now);
}

void IdleLimitLearner::note(End end, Instant now) {
  if (end.idle_for <= refutation_limit()) survivors_ = 0;
  if (together_count_ == 0) together_since_ = now;
  if (together_count_ < kSamples) together_[together_count_++] = end;
}

void IdleLimitLearner::evaluate(Instant now) {
  if (together_count_ != 0 && now - together_since_ > kOneEvent) accept_pending();
}

void IdleLimitLearner::accept_pending() {
  const auto begin = together_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(std::exchange(together_count_, 0));
  const auto [shortest, longest] =
      std::minmax_element(begin, end, [](const End& one, const End& other) { return one.idle_for < other.idle_for; });
  const bool differ = longest->idle_for - shortest->idle_for > std::max(kOneEvent, longest->idle_for / 10);
  if (static_cast<std::size_t>(end - begin) >= kAgree && differ) return;  // the origin closed everything at once
  std::for_each(begin, end, [this](const End& one) {
    closes_[next_close_] = one.idle_for;
    next_close_ = (next_close_ + 1) % kRecentCloses;
    close_count_ = std::min(close_count_ + 1, kRecentCloses);
    if (one.sample) add(one.idle_for);
  });
  update_limit();
}

void IdleLimitLearner::add(Duration idle_for) {
  samples_[next_] = idle_for;
  next_ = (next_ + 1) % kSamples;
  count_ = std::min(count_ + 1, kSamples);
  if (raised_ && idle_for < *raised_) raised_ = idle_for;
}

// ---- refutations ----

void IdleLimitLearner::outlived(Duration idle_for) {
  if (limit_ && idle_for > *limit_) raise(idle_for);
}

// Discards the earlier samples, which `idle_for` refutes.
void IdleLimitLearner::raise(Duration idle_for) {
  count_ = next_ = close_count_ = next_close_ = 0;
  raised_ = idle_for;
  if (hint_ && *hint_ < idle_for) hint_.reset();
  update_limit();
}

namespace {
// Removes those of the first `count` that are not `kept`. Returns how many remain.
template <class IdleTimes, class Kept>
std::size_t keep(IdleTimes& idle_times, std::size_t count, Kept kept) {
  const auto begin = idle_times.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
  return static_cast<std::size_t>(std::remove_if(begin, end, [&](Duration one) { return !kept(one); }) - begin);
}
}  // namespace

void IdleLimitLearner::survived(Duration idle_for) {
  if (idle_for <= refutation_limit()) return;
  least_survivor_ = survivors_ == 0 ? idle_for : std::min(least_survivor_, idle_for);
  if (++survivors_ < kRefute) return;
  survivors_ = 0;
  const auto stands = [this](Duration one) { return beyond(one) >= least_survivor_; };
  close_count_ = keep(closes_, close_count_, stands);
  next_close_ = close_count_ % kRecentCloses;
  count_ = keep(samples_, count_, stands);
  next_ = count_ % kSamples;
  update_limit();
}

Duration IdleLimitLearner::refutation_limit() const {
  const std::optional<Duration> least = shortest();
  return least ? beyond(*least) : Duration::max();
}

// Includes ends that may yet turn out to be a restart.
std::optional<Duration> IdleLimitLearner::shortest() const {
  std::optional<Duration> least;
  for (std::size_t i = 0; i < close_count_; ++i) least = std::min(least.value_or(closes_[i]), closes_[i]);
  for (std::size_t i = 0; i < together_count_; ++i) {
    least = std::min(least.value_or(together_[i].idle_for), together_[i].idle_for);
  }
  return least;
}

// ---- hints and restored values ----

void IdleLimitLearner::hint(std::optional<Duration> timeout) {
  if (!timeout || timeout == hint_) return;
  hint_ = timeout;
  update_limit();
}

void IdleLimitLearner::restore(Duration limit) {
  if (limit_) return;
  raised_ = limit;
  update_limit();
}

// ---- results ----

void IdleLimitLearner::update_limit() {
  std::optional<Duration> limit = agreed();
  if (limit) raised_.reset();
  no_keep_alive_ = std::min(limit.value_or(Duration::max()), hint_.value_or(Duration::max())) <= kMinMargin;
  if (!limit) limit = raised_;
  if (hint_ && (!limit || *hint_ < *limit)) limit = hint_;
  limit_ = limit;
}

Duration IdleLimitLearner::trust() const {
  if (no_keep_alive_) return kOnlyNew;
  Duration most = limit_ ? before(*limit_) : Duration::max();
  if (const std::optional<Duration> least = shortest()) most = std::min(most, before(*least));
  return std::max(most, Duration::zero());
}

std::optional<Duration> IdleLimitLearner::agreed() const {
  std::array<Duration, kSamples> sorted = samples_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count_);
  std::sort(sorted.begin(), end);
  for (std::size_t i = 0; i + kAgree <= count_; ++i) {
    if (sorted[i + kAgree - 1] > sorted[i] + std::max(kJitter, sorted[i] / 5)) continue;
    return sorted[std::max(i, (count_ - 1) / 10)];
  }
  return std::nullopt;
}

}  // namespace carpool::pool
