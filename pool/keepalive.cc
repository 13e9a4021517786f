#include "pool/keepalive.h"

#include <utility>

namespace carpool::pool {

void KeepAlive::closed_by_origin(Duration rested, bool left, Instant now) {
  settle(now);
  if (left && limit_ && rested > *limit_ + *limit_ / 10) return raise(rested);
  if (together_count_ == 0) together_since_ = now;
  if (together_count_ < kSamples) together_[together_count_++] = rested;
}

void KeepAlive::settle(Instant now) {
  if (together_count_ != 0 && now - together_since_ > kOneEvent) take_in();
}

void KeepAlive::take_in() {
  const auto begin = together_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(std::exchange(together_count_, 0));
  const auto [shortest, longest] = std::minmax_element(begin, end);
  const bool differ = *longest - *shortest > std::max(kOneEvent, *longest / 10);
  if (static_cast<std::size_t>(end - begin) >= kAgree && differ) return;  // the origin let go of everything at once
  std::for_each(begin, end, [this](Duration rested) { add(rested); });
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
