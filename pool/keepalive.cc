#include "pool/keepalive.h"

#include <utility>

namespace carpool::pool {

void KeepAlive::closed_by_origin(Duration rested, bool left, Instant now) {
  settle(now);
  if (left && limit_ && rested > *limit_ + *limit_ / 10) return raise(rested);
  if (together_.empty()) together_since_ = now;
  if (together_.size() < kSamples) together_.push_back(rested);
}

void KeepAlive::settle(Instant now) {
  if (!together_.empty() && now - together_since_ > kOneEvent) take_in();
}

void KeepAlive::take_in() {
  const std::vector<Duration> ends = std::exchange(together_, {});
  const auto [shortest, longest] = std::minmax_element(ends.begin(), ends.end());
  const bool differ = *longest - *shortest > std::max(kOneEvent, *longest / 10);
  if (ends.size() >= kAgree && differ) return;  // the origin let go of everything at once
  for (const Duration rested : ends) add(rested);
  judge();
}

void KeepAlive::add(Duration rested) {
  samples_[next_] = rested;
  next_ = (next_ + 1) % kSamples;
  count_ = std::min(count_ + 1, kSamples);
  if (raised_ && rested < *raised_) raised_ = rested;
}

void KeepAlive::outlived(Duration rested) {
  if (limit_ && rested > *limit_) raise(rested);
}

// What was learned before is refuted.
void KeepAlive::raise(Duration rested) {
  count_ = next_ = 0;
  raised_ = rested;
  if (hint_ && *hint_ < rested) hint_.reset();
  judge();
}

void KeepAlive::hint(std::optional<Duration> timeout) {
  if (!timeout || timeout == hint_) return;
  hint_ = timeout;
  judge();
}

void KeepAlive::recall(Duration limit) {
  if (limit_) return;
  raised_ = limit;
  judge();
}

void KeepAlive::judge() {
  std::optional<Duration> limit = agreed();
  if (limit) raised_.reset();
  if (!limit) limit = raised_;
  if (hint_ && (!limit || *hint_ < *limit)) limit = hint_;
  if (limit) limit = std::max(*limit, kFloor);
  limit_ = limit;
}

std::optional<Duration> KeepAlive::agreed() const {
  std::array<Duration, kSamples> sorted = samples_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count_);
  std::sort(sorted.begin(), end);
  for (std::size_t i = 0; i + kAgree <= count_; ++i) {
    if (sorted[i + kAgree - 1] > sorted[i] + sorted[i] / 5) continue;
    return sorted[std::max(i, (count_ - 1) / 10)];
  }
  return std::nullopt;
}

}  // namespace carpool::pool
