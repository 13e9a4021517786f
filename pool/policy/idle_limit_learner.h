// IdleLimitLearner: learns the idle timeout of an origin from the connections that it closes, so that carpool closes an
// idle connection first and no request crosses the origin's FIN.
//
// A sample is the idle time, however short, of a connection that had served and that the origin then closed: in order
// while it was idle, or under a request before the first byte of the response. Three or more ends with different idle
// times within 100 ms are one event (a restart of the origin) and no sample. Once three samples agree within 20 % (20
// ms at least), the limit is their 10th percentile (over the last 32; values below the first three that agree are
// outliers); a `Keep-Alive: timeout` hint is an upper bound. Two values follow:
//   effective limit  a connection idle for longer is retired: 10 %, 100 ms at least, before the limit, which counts as
//                    1 s at least. Every 16th connection at this point is left to the origin; if it survives the limit,
//                    the limit was too low.
//   trust            a connection idle for longer is not given to a non-idempotent request. One close lowers it below
//                    that idle time, by the same margin; 16 connections that survive longer refute the close. If the
//                    limit is below the margin, the origin does not keep alive: such a request gets a new connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace carpool::pool {

class IdleLimitLearner {
 public:
  static constexpr std::size_t kSamples = 32;
  static constexpr std::size_t kAgree = 3;
  static constexpr std::size_t kRecentCloses = 8;
  static constexpr std::uint32_t kLeaveEvery = 16;
  static constexpr std::uint32_t kRefute = 16;
  static constexpr Duration kOneEvent = std::chrono::milliseconds(100);
  static constexpr Duration kFloor = std::chrono::seconds(1);
  static constexpr Duration kMinMargin = std::chrono::milliseconds(100);
  static constexpr Duration kJitter = std::chrono::milliseconds(20);  // idle times that differ by less are equal
  // A close this soon after a response is not a sample if the connection was reused several times before.
  static constexpr Duration kAtOnce = std::chrono::milliseconds(2);
  static constexpr std::uint32_t kKeptAlive = 4;

  // Notes that the origin closed a connection idle for `idle_for`, in order or under a request; `left`: retire() had
  // left it to the origin.
  void closed_by_origin(Duration idle_for, bool left, Instant now);
  // Notes that the origin reset an idle connection: lowers the trust; not a sample of the limit.
  void reset_by_origin(Duration idle_for, Instant now);
  // Notes that a connection left to the origin reached carpool's own idle timeout alive.
  void outlived(Duration idle_for);
  // Notes that a connection idle for `idle_for` was alive. Only values beyond refutation_limit() count, once per
  // connection.
  void survived(Duration idle_for);
  // Notes the hint of a connection's first response; nullopt if it had none.
  void hint(std::optional<Duration> timeout);
  // Restores the limit learned by another process, which is kept until our own samples agree on another.
  void restore(Duration limit);
  // Evaluates pending ends once they can be distinguished from a restart. Called periodically.
  void evaluate(Instant now);
  // Returns false if this connection, idle for the effective limit, is to be left to the origin.
  bool retire() { return ++retirements_ % kLeaveEvery != 0; }

  // Returns the learned idle timeout; nullopt: not known yet.
  std::optional<Duration> limit() const { return limit_; }
  // Returns the idle time after which connections are retired; Duration::max() if it is unknown.
  Duration effective_limit() const { return limit_ ? before(std::max(*limit_, kFloor)) : Duration::max(); }
  // Returns the longest idle time acceptable for a non-idempotent request. Duration::max(): any; kOnlyNew: only a
  // connection that has never served.
  static constexpr Duration kOnlyNew{-1};
  Duration trust() const;
  // Returns the idle time beyond which a surviving connection refutes the shortest idle time at which the origin closed
  // one; Duration::max(): no close to refute.
  Duration refutation_limit() const;
  std::size_t samples() const { return count_; }

 private:
  struct End {
    Duration idle_for{};
    bool sample = false;
  };
  static Duration before(Duration limit) { return limit - std::max(kMinMargin, limit / 10); }
  static Duration beyond(Duration idle_for) { return idle_for + std::max(kJitter, idle_for / 10); }
  void note(End end, Instant now);
  void accept_pending();
  void add(Duration idle_for);
  void raise(Duration idle_for);
  void update_limit();
  std::optional<Duration> agreed() const;
  std::optional<Duration> shortest() const;

  std::array<Duration, kSamples> samples_{};
  std::size_t count_ = 0, next_ = 0;
  std::array<Duration, kRecentCloses> closes_{};  // the last closes that were not refuted
  std::size_t close_count_ = 0, next_close_ = 0;
  std::uint32_t survivors_ = 0;  // consecutive, beyond refutation_limit()
  Duration least_survivor_{};
  std::array<End, kSamples> together_{};  // closes within kOneEvent: samples, or a restart
  std::size_t together_count_ = 0;
  Instant together_since_{};
  std::optional<Duration> raised_;  // an idle time that refuted the limit, until samples agree on another
  std::optional<Duration> hint_, limit_;
  bool no_keep_alive_ = false;
  std::uint32_t retirements_ = 0;
};

}  // namespace carpool::pool
