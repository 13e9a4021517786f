// RetryState: how often a request was sent again and for which reasons, and whether it may be sent once more. The
// reason is taken from the table of retry_policy.h; this class adds the bounds. Only failures reach it.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

class RetryBudget;

enum class RetryOutcome : std::uint8_t {
  retry,
  unsafe,       // nothing proves that the request may be sent again
  exhausted,    // the reason's own bound, or that of all attempts together, is reached
  over_budget,  // request.retry_budget of the origin is spent
};

struct RetryDecision {
  RetryOutcome outcome = RetryOutcome::unsafe;
  RetryReason reason = RetryReason::not_sent;  // not for `unsafe`
};

inline constexpr std::uint32_t kExtraAttempts = 8;

// Attempts of one request, the first one included, whatever the reasons and the origin say: each may cost a dial.
constexpr std::uint32_t most_attempts(std::uint32_t max_retries) {
  return max_retries + kExtraAttempts;
}

class RetryState final {
 public:
  // Decides what follows an attempt, and counts the retry if there is one. `max_retries`: bounds idempotent_reused,
  // and adds to the bound of all attempts. Only idempotent_reused and the conditional reasons cost `budget`: all others
  // prove that the origin did nothing.
  RetryDecision decide(RequestFate fate, Repeatable request, std::uint32_t max_retries, RetryBudget& budget);

  std::uint32_t attempts() const { return 1 + idempotent_ + conditional_ + proven_; }
  std::uint32_t idempotent() const { return idempotent_; }  // refunded to the budget if the request succeeds
  // The origin requires HTTP/1.1 for this request.
  void require_h1() { h1_required_ = true; }
  bool h1_required() const { return h1_required_; }

 private:
  RetryOutcome outcome_of(RetryReason reason, std::uint32_t max_retries, RetryBudget& budget) const;

  std::uint32_t idempotent_ = 0;    // retries for idempotent_reused
  std::uint32_t conditional_ = 0;   // retries for the reasons that prove nothing
  std::uint32_t proven_ = 0;        // retries for any other reason
  std::uint32_t misdirected_ = 0;   // of those
  std::uint32_t unauthorized_ = 0;  // of those
  bool h1_required_ = false;
};

}  // namespace carpool::proxy
