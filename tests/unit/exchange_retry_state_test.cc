// Unit tests of RetryState: every row of the retry table with its bound.
#include "proxy/exchange/retry_state.h"

#include <gtest/gtest.h>

#include "proxy/upstream/origin/retry_budget.h"

namespace carpool::proxy {
namespace {

class TheRetries : public ::testing::Test {
 protected:
  RetryOutcome decide(AttemptResult result, Repeatable request = Repeatable::harmless, std::uint32_t max_retries = 1) {
    return retries_.decide(result, request, max_retries, budget_).outcome;
  }
  // Uses up the origin's retry budget.
  void spend() {
    budget_.open(0, 0);
    while (budget_.withdraw()) continue;
  }
  RetryBudget budget_;  // without a limit
  RetryState retries_;
};

TEST_F(TheRetries, FollowTheTableInEveryRow) {
  for (std::size_t result = 0; result < kAttemptResults; ++result) {
    for (std::size_t request = 0; request < kRepeatables; ++request) {
      RetryState retries;
      const auto expected = kRetryTable[result][request];
      const RetryDecision decision =
          retries.decide(static_cast<AttemptResult>(result), static_cast<Repeatable>(request), 1, budget_);
      EXPECT_EQ(decision.outcome, expected ? RetryOutcome::retry : RetryOutcome::unsafe) << result << " " << request;
      EXPECT_EQ(decision.reason, expected.value_or(RetryReason::not_sent));
      EXPECT_EQ(retries.attempts(), expected ? 2U : 1U);
      EXPECT_EQ(retries.idempotent(), expected == RetryReason::idempotent_reused ? 1U : 0U);
    }
  }
}

TEST_F(TheRetries, StopAtMaxRetriesAfterClosedConnections) {
  EXPECT_EQ(decide(AttemptResult::closed_idle), RetryOutcome::retry);
  EXPECT_EQ(decide(AttemptResult::closed_idle), RetryOutcome::exhausted);
  EXPECT_EQ(decide(AttemptResult::closed_idle, Repeatable::harmless, 2), RetryOutcome::retry);
  EXPECT_EQ(retries_.idempotent(), 2U);
}

TEST_F(TheRetries, AreNoneAfterClosedConnectionsIfMaxRetriesIsZero) {
  EXPECT_EQ(decide(AttemptResult::closed_idle, Repeatable::harmless, 0), RetryOutcome::exhausted);
  EXPECT_EQ(decide(AttemptResult::not_sent, Repeatable::whole, 0), RetryOutcome::retry);
}

TEST_F(TheRetries, SendAMisdirectedRequestOnceMore) {
  EXPECT_EQ(decide(AttemptResult::misdirected, Repeatable::whole), RetryOutcome::retry);
  EXPECT_EQ(decide(AttemptResult::misdirected, Repeatable::whole), RetryOutcome::exhausted);
  EXPECT_EQ(decide(AttemptResult::goaway, Repeatable::whole), RetryOutcome::retry) << "another reason goes on";
}

TEST_F(TheRetries, SendARequestWithAnotherTokenOnce) {
  EXPECT_EQ(decide(AttemptResult::unauthorized, Repeatable::whole, 0), RetryOutcome::retry) << "whatever max_retries";
  EXPECT_EQ(decide(AttemptResult::unauthorized, Repeatable::whole, 0), RetryOutcome::exhausted);
  EXPECT_EQ(decide(AttemptResult::unauthorized, Repeatable::partial, 3), RetryOutcome::unsafe);
}

TEST_F(TheRetries, StopAtOneNumberOfAttemptsWhateverTheReasons) {
  for (const std::uint32_t max_retries : {0U, 1U, 3U}) {
    for (std::uint32_t idempotent = 0; idempotent <= max_retries; ++idempotent) {
      RetryState retries;
      for (std::uint32_t i = 0; i < idempotent; ++i) {
        EXPECT_EQ(retries.decide(AttemptResult::closed_idle, Repeatable::harmless, max_retries, budget_).outcome,
                  RetryOutcome::retry);
      }
      RetryDecision last;
      do {
        last = retries.decide(AttemptResult::refused_stream, Repeatable::whole, max_retries, budget_);
      } while (last.outcome == RetryOutcome::retry);
      EXPECT_EQ(last.outcome, RetryOutcome::exhausted);
      EXPECT_EQ(retries.attempts(), max_retries + kExtraAttempts);
      EXPECT_EQ(retries.attempts(), max_attempts(max_retries));
    }
  }
}

TEST_F(TheRetries, CostTheOriginsBudgetOnlyAfterAClosedConnection) {
  spend();
  EXPECT_EQ(decide(AttemptResult::closed_idle), RetryOutcome::over_budget);
  EXPECT_EQ(retries_.attempts(), 1U) << "a denied retry is no attempt";
  for (const AttemptResult result : {AttemptResult::not_sent, AttemptResult::goaway, AttemptResult::refused_stream}) {
    EXPECT_EQ(decide(result, Repeatable::whole), RetryOutcome::retry);
  }
  EXPECT_EQ(retries_.idempotent(), 0U) << "nothing to refund";
}

TEST_F(TheRetries, ByConditionCostTheBudgetAndShareTheirNumberWithThoseAfterClosedConnections) {
  for (const AttemptResult result :
       {AttemptResult::refused_status, AttemptResult::reset, AttemptResult::unconnected, AttemptResult::late}) {
    RetryState retries;
    EXPECT_EQ(retries.decide(result, Repeatable::harmless, 2, budget_).outcome, RetryOutcome::retry);
    EXPECT_EQ(retries.decide(AttemptResult::closed_idle, Repeatable::harmless, 2, budget_).outcome,
              RetryOutcome::retry);
    EXPECT_EQ(retries.decide(result, Repeatable::harmless, 2, budget_).outcome, RetryOutcome::exhausted);
    EXPECT_EQ(retries.idempotent(), 1U) << "only what met a stale connection is refunded";
    EXPECT_EQ(retries.attempts(), 3U);
  }
  spend();
  for (const AttemptResult result :
       {AttemptResult::refused_status, AttemptResult::reset, AttemptResult::unconnected, AttemptResult::late}) {
    EXPECT_EQ(decide(result), RetryOutcome::over_budget);
  }
}

TEST_F(TheRetries, ByConditionRepeatNothingThatMayNotBeDoneTwice) {
  for (const AttemptResult result : {AttemptResult::refused_status, AttemptResult::reset, AttemptResult::late}) {
    EXPECT_EQ(decide(result, Repeatable::whole, 8), RetryOutcome::unsafe);
    EXPECT_EQ(decide(result, Repeatable::partial, 8), RetryOutcome::unsafe);
  }
}

TEST(RetryOn, IsASetOfStatusesAndWords) {
  const RetryConditions none;
  const RetryConditions some({"503", "retriable-4xx", "reset", "400", "599"});
  for (int code = 0; code < 1000; ++code) {
    EXPECT_FALSE(none.status(static_cast<std::uint16_t>(code)));
    EXPECT_EQ(some.status(static_cast<std::uint16_t>(code)), code == 503 || code == 409 || code == 400 || code == 599);
  }
  EXPECT_TRUE(some.reset());
  EXPECT_FALSE(some.connect_failure());
  EXPECT_TRUE(RetryConditions({"connect-failure"}).connect_failure());
}

TEST_F(TheRetries, TakeNothingFromTheBudgetOnceTheirNumberIsReached) {
  budget_.open(0, 0);
  RetryBudget untouched;
  untouched.open(0, 0);
  EXPECT_EQ(decide(AttemptResult::closed_idle, Repeatable::harmless, 0), RetryOutcome::exhausted);
  while (untouched.withdraw()) EXPECT_TRUE(budget_.withdraw());
  EXPECT_FALSE(budget_.withdraw());
}

TEST_F(TheRetries, RememberThatTheOriginRequiresHttp1) {
  EXPECT_FALSE(retries_.h1_required());
  retries_.require_h1();
  EXPECT_TRUE(retries_.h1_required());
}

}  // namespace
}  // namespace carpool::proxy
