// IdleLimitLearner: how long an origin lets a connection rest, learned from the ends that it makes, so that a
// connection is retired before the origin does it and a request never meets the FIN on its way.
//
// A sample is the rest, however short, of a connection that had served and was ended by the origin: in order while it
// was idle, or under a request before a byte of the answer. Three or more ends of different rests within 100 ms are one
// event (the origin restarts) and no sample. Once three samples agree within 20 % (20 ms at least) the limit is their
// 10th percentile (over the last 32; what lies below the first three that agree is an accident), and a `Keep-Alive:
// timeout` hint is an upper bound. Two rules follow:
//   horizon  what rests longer is retired: 10 %, 100 ms at least, before the limit, which counts as 1 s at least: a
//            shorter rest ends by itself. Every 16th connection at the horizon is left to the origin: should it live
//            longer, the limit was too low.
//   trust    what rests longer is not lent to a request that must not be repeated. One end is enough to lower it below
//            that rest, by the same margin; 16 connections that live longer refute the end. An origin whose limit is
//            below the margin does not keep alive: such a request gets a new connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace carpool::pool {

// Guarded by its destination's mutex.
class IdleLimitLearner {
 public:
  static constexpr std::size_t kSamples = 32;
  static constexpr std::size_t kAgree = 3;
  static constexpr std::size_t kDoubts = 8;
  static constexpr std::uint32_t kLeaveEvery = 16;
  static constexpr std::uint32_t kRefute = 16;
  static constexpr Duration kOneEvent = std::chrono::milliseconds(100);
  static constexpr Duration kFloor = std::chrono::seconds(1);
  static constexpr Duration kLeastMargin = std::chrono::milliseconds(100);
  static constexpr Duration kJitter = std::chrono::milliseconds(20);  // rests that differ by less are equal
  // An end so soon after an answer says nothing of rests where the connection was used again several times before.
  static constexpr Duration kAtOnce = std::chrono::milliseconds(2);
  static constexpr std::uint32_t kKeptAlive = 4;

  // The origin ended a connection that had rested so long, in order or under a request; `left`: one that was left to it
  // at the horizon.
  void closed_by_origin(Duration rested, bool left, Instant now);
  // The origin ended it while it was idle, but not in order: this lowers the trust and is no sample of the limit.
  void broken_off(Duration rested, Instant now);
  // One that was left to the origin reached our own limit alive.
  void outlived(Duration rested);
  // One was seen alive that had rested so long. Only rests beyond doubt() are news, each connection's once.
  void survived(Duration rested);
  // Of a connection's first response; nothing when it had none.
  void hint(std::optional<Duration> timeout);
  // What another process has learned of it: believed until samples of our own agree on something else.
  void restore(Duration limit);
  // Takes in what waits to be told apart from a restart. Called now and then.
  void settle(Instant now);
  // At the horizon: may this connection be retired? Else it is left to the origin.
  bool retire() { return ++retirements_ % kLeaveEvery != 0; }

  // What the origin seems to allow; nothing: not known yet.
  std::optional<Duration> limit() const { return limit_; }
  // Connections that rested longer are retired; nothing is known: Duration::max().
  Duration effective_limit() const { return limit_ ? before(std::max(*limit_, kFloor)) : Duration::max(); }
  // The longest rest that a request that must not be repeated may find. Duration::max(): nothing speaks against any;
  // kOnlyNew: it takes a connection that never served.
  static constexpr Duration kOnlyNew{-1};
  Duration trust() const;
  // Who lives longer refutes the shortest rest that an origin ended; Duration::max(): none is doubted.
  Duration doubt() const;
  std::size_t samples() const { return count_; }

 private:
  struct End {
    Duration rested{};
    bool sample = false;
  };
  static Duration before(Duration limit) { return limit - std::max(kLeastMargin, limit / 10); }
  static Duration beyond(Duration rested) { return rested + std::max(kJitter, rested / 10); }
  void note(End end, Instant now);
  void take_in();
  void add(Duration rested);
  void raise(Duration rested);
  void judge();
  std::optional<Duration> agreed() const;
  std::optional<Duration> shortest() const;

  std::array<Duration, kSamples> samples_{};
  std::size_t count_ = 0, next_ = 0;
  std::array<Duration, kDoubts> doubts_{};  // the last ends that nothing refuted
  std::size_t doubt_count_ = 0, next_doubt_ = 0;
  std::uint32_t survivors_ = 0;  // beyond doubt(), in a row
  Duration least_survivor_{};
  std::array<End, kSamples> together_{};  // ends of one moment: samples, or a restart
  std::size_t together_count_ = 0;
  Instant together_since_{};
  std::optional<Duration> raised_;  // one that outlived the limit, until samples agree on another
  std::optional<Duration> hint_, limit_;
  bool keeps_nothing_alive_ = false;
  std::uint32_t retirements_ = 0;
};

}  // namespace carpool::pool
