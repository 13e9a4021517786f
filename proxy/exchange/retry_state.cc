#include "proxy/exchange/retry_state.h"

#include "proxy/upstream/origin/retry_budget.h"

namespace carpool::proxy {

RetryDecision RetryState::decide(AttemptResult result, Repeatable request, std::uint32_t max_retries,
                                 RetryBudget& budget) {
  const std::optional<RetryReason> reason = retry_reason(result, request);
  if (!reason) return {};
  const RetryOutcome outcome = outcome_of(*reason, max_retries, budget);
  if (outcome == RetryOutcome::retry) {
    ++(*reason == RetryReason::idempotent_reused ? idempotent_ : conditional(*reason) ? conditional_ : proven_);
    if (*reason == RetryReason::misdirected) ++misdirected_;
    if (*reason == RetryReason::unauthorized) ++unauthorized_;
    CARPOOL_ASSERT(attempts() <= max_attempts(max_retries));
  }
  return {outcome, *reason};
}

RetryOutcome RetryState::outcome_of(RetryReason reason, std::uint32_t max_retries, RetryBudget& budget) const {
  if (attempts() >= max_attempts(max_retries)) return RetryOutcome::exhausted;
  // The request is sent once more, on one other connection (RFC 9110 §15.5.20).
  if (reason == RetryReason::misdirected && misdirected_ != 0) return RetryOutcome::exhausted;
  if (reason == RetryReason::unauthorized && unauthorized_ != 0) return RetryOutcome::exhausted;
  if (reason != RetryReason::idempotent_reused && !conditional(reason)) return RetryOutcome::retry;
  if (idempotent_ + conditional_ >= max_retries) return RetryOutcome::exhausted;
  return budget.withdraw() ? RetryOutcome::retry : RetryOutcome::over_budget;
}

}  // namespace carpool::proxy
