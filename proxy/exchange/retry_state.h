// RetryState: how often a request was retried and for which reasons, and whether it may be retried again. The table of
// retry_policy.h gives the reason; this class adds the limits. Called only after failures.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

class RetryBudget;

enum class RetryOutcome : std::uint8_t {
  retry,
  unsafe,       // nothing proves that the request may be sent again
  exhausted,    // the limit of the reason, or of all attempts together, is reached
  over_budget,  // request.retry_budget of the origin is used up
};

struct RetryDecision {
  RetryOutcome outcome = RetryOutcome::unsafe;
  RetryReason reason = RetryReason::not_sent;  // undefined for `unsafe`
};

inline constexpr std::uint32_t kExtraAttempts = 8;

// The reason why a request that its origin wants over HTTP/1.1 fails.
inline constexpr const char* kH1NotListed =
    "the origin requires HTTP/1.1 (HTTP_1_1_REQUIRED), which upstream.protocols does not list";

// Limit of the attempts of one request, including the first, for all reasons together: each attempt may cost a dial.
constexpr std::uint32_t max_attempts(std::uint32_t max_retries) {
  return max_retries + kExtraAttempts;
}

class RetryState final {
 public:
  // Decides what follows an attempt, and counts the retry if there is one. `max_retries` limits idempotent_reused and
  // the conditional reasons, and is a part of the limit of all attempts. Only these reasons withdraw from `budget`; all
  // others prove that the origin did nothing.
  RetryDecision decide(AttemptResult result, Repeatable request, std::uint32_t max_retries, RetryBudget& budget);

  std::uint32_t attempts() const { return 1 + idempotent_ + conditional_ + proven_; }
  std::uint32_t idempotent() const { return idempotent_; }  // refunded to the budget if the request succeeds
  // Must be called if the origin requires HTTP/1.1 for this request.
  void require_h1() { h1_required_ = true; }
  bool h1_required() const { return h1_required_; }

 private:
  RetryOutcome outcome_of(RetryReason reason, std::uint32_t max_retries, RetryBudget& budget) const;

  std::uint32_t idempotent_ = 0;    // retries for idempotent_reused
  std::uint32_t conditional_ = 0;   // retries for the reasons that prove nothing
  std::uint32_t proven_ = 0;        // retries for any other reason
  std::uint32_t misdirected_ = 0;   // included in proven_
  std::uint32_t unauthorized_ = 0;  // included in proven_
  bool h1_required_ = false;
};

}  // namespace carpool::proxy
