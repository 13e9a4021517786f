// TokenSchedule: when a token is fetched, renewed, discarded, and fetched again after a failure. A pure value: its
// owner reports events with their time, and performs the action that due() returns.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/random.h"

namespace carpool::proxy {

class TokenSchedule {
 public:
  explicit TokenSchedule(std::uint64_t seed) : random_(seed) {}

  enum class Action : std::uint8_t {
    none,
    fetch,   // request a token now; one request at a time
    expire,  // the token has expired: it must not be used any more
  };
  // Returns the action that is due now. Must be called again until it returns none, then at next().
  Action due(Instant now);
  Instant next() const;

  // Reports that a token was granted. `lifetime`: the remaining lifetime.
  void granted(Instant now, Duration lifetime);
  // Reports a token that was granted before this schedule began; it may have ended.
  void inherited(Instant now, Instant end);
  void failed(Instant now);
  // Reports that the origin does not accept the token. Another one is requested at once, except during a pause after a
  // failure.
  void refused(Instant now);

  bool fetching() const { return fetching_; }
  Instant end() const { return ends_at_; }  // expiry of the token; kNever if there is none
  bool has_token() const { return ends_at_ != kNever; }
  std::uint32_t failures() const { return failures_; }  // failures since the last token

  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kMaxPause = std::chrono::minutes(1);
  static constexpr Duration kShortestLife = std::chrono::seconds(2);
  static constexpr Duration kMaxLife = std::chrono::hours(24 * 30);

 private:
  Random random_;
  bool fetching_ = false;
  std::uint32_t failures_ = 0;
  Instant fetch_at_ = Instant{};  // at once
  Instant ends_at_ = kNever;      // kNever: there is no token
};

}  // namespace carpool::proxy
