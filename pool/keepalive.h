// KeepAlive: how long an origin lets a connection rest, learned from the ends that it makes, so that a connection is
// retired before the origin does it and a request never meets the FIN on its way.
//
// A sample is the rest of a connection that had served, was idle, and was ended in order. Three or more ends of
// different rests within 100 ms are one event (the origin restarts) and no sample. Once three samples agree within 20 %
// the limit is their 10th percentile (over the last 32; what lies below the first three that agree is an accident), 1 s
// at least, and a `Keep-Alive: timeout` hint is an upper bound. The horizon keeps 10 %, 100 ms at least, from the
// limit. Every 16th connection at the horizon is left to the origin: should it live longer, the limit was too low.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace carpool::pool {

// Guarded by its destination's mutex.
class KeepAlive {
 public:
  static constexpr std::size_t kSamples = 32;
  static constexpr std::size_t kAgree = 3;
  static constexpr std::uint32_t kLeaveEvery = 16;
  static constexpr Duration kOneEvent = std::chrono::milliseconds(100);
  static constexpr Duration kFloor = std::chrono::seconds(1);
  static constexpr Duration kLeastMargin = std::chrono::milliseconds(100);

  // The origin ended a connection that had rested so long; `left`: one that was left to it at the horizon.
  void closed_by_origin(Duration rested, bool left, Instant now);
  // One that was left to the origin reached our own limit alive.
  void outlived(Duration rested);
  // Of a connection's first response; nothing when it had none.
  void hint(std::optional<Duration> timeout);
  // What another process has learned of it: believed until samples of our own agree on something else.
  void recall(Duration limit);
  // Takes in what waits to be told apart from a restart. Called now and then.
  void settle(Instant now);
  // At the horizon: may this connection be retired? Else it is left to the origin.
  bool retire() { return ++retirements_ % kLeaveEvery != 0; }

  // What the origin seems to allow; nothing: not known yet.
  std::optional<Duration> limit() const { return limit_; }
  // Connections that rested longer are retired; nothing is known: Duration::max().
  Duration horizon() const { return limit_ ? *limit_ - std::max(kLeastMargin, *limit_ / 10) : Duration::max(); }
  std::size_t samples() const { return count_; }

 private:
  void take_in();
  void add(Duration rested);
  void raise(Duration rested);
  void judge();
  std::optional<Duration> agreed() const;

  std::array<Duration, kSamples> samples_{};
  std::size_t count_ = 0, next_ = 0;
  std::array<Duration, kSamples> together_{};  // ends of one moment: samples, or a restart
  std::size_t together_count_ = 0;
  Instant together_since_{};
  std::optional<Duration> raised_;  // one that outlived the limit, until samples agree on another
  std::optional<Duration> hint_, limit_;
  std::uint32_t retirements_ = 0;
};

}  // namespace carpool::pool
