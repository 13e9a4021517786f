// Unit tests of RetryPolicy: the requests that may be retried, and the proof each needs.
#include "proxy/upstream/retry_policy.h"

#include <gtest/gtest.h>

namespace carpool::proxy {
namespace {

Attempt stale_get() {
  Attempt attempt;
  attempt.method = "GET";
  attempt.reused = attempt.any_byte_sent = attempt.connection_ended = true;
  return attempt;
}

TEST(Retry, RepeatsAGetWhoseReusedConnectionEndedWithoutAByte) {
  EXPECT_EQ(retry_reason(stale_get(), {}), RetryReason::idempotent_reused);
}

TEST(Retry, NeverRepeatsAPostOfWhichAByteWasSent) {
  Attempt attempt = stale_get();
  attempt.method = "POST";
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, RepeatsAnyMethodOfWhichNothingWasSent) {
  Attempt attempt = stale_get();
  attempt.method = "POST";
  attempt.has_body = true;
  attempt.any_byte_sent = false;
  EXPECT_EQ(retry_reason(attempt, {}), RetryReason::not_sent);
}

TEST(Retry, RepeatsAnyMethodThatTheOriginSaysItDidNotTouch) {
  for (const RetryReason proof : {RetryReason::goaway, RetryReason::refused_stream, RetryReason::not_sent}) {
    Attempt attempt = stale_get();
    attempt.method = "POST";
    attempt.has_body = true;
    attempt.connection_ended = false;
    attempt.unprocessed = proof;
    EXPECT_EQ(retry_reason(attempt, {}), proof);
    attempt.body_whole = false;
    EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
  }
}

TEST(Retry, IsBoundedForWhatTheOriginRefuses) {
  Attempt attempt = stale_get();
  attempt.unprocessed = RetryReason::refused_stream;
  attempt.proven_replays = kMaxProvenReplays;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, NeedsTheWholeBodyToRepeatIt) {
  Attempt attempt = stale_get();
  attempt.any_byte_sent = attempt.body_whole = false;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, NeverRepeatsAfterAByteOfTheResponse) {
  Attempt attempt = stale_get();
  attempt.any_byte_back = true;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, NeverRepeatsAfterATimeout) {
  Attempt attempt = stale_get();
  attempt.timed_out = true;
  attempt.any_byte_sent = false;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, NeverRepeatsOnAConnectionThatNeverServedBefore) {
  Attempt attempt = stale_get();
  attempt.reused = false;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, DoesNotTakeAMalformedAnswerForAClosedConnection) {
  Attempt attempt = stale_get();
  attempt.connection_ended = false;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, StopsAtMaxRetriesAndAtEightProvenReplays) {
  Attempt attempt = stale_get();
  attempt.idempotent_retries = 1;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
  EXPECT_EQ(retry_reason(attempt, {.max_retries = 2}), RetryReason::idempotent_reused);
  attempt.any_byte_sent = false;
  attempt.proven_replays = kMaxProvenReplays - 2;
  EXPECT_EQ(retry_reason(attempt, {}), RetryReason::not_sent) << "eight attempts were made, the next is the last";
  attempt.proven_replays = kMaxProvenReplays - 1;
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
}

TEST(Retry, StopsAtOneNumberOfAttemptsWhateverTheProofs) {
  for (const std::uint32_t retries : {0U, 1U, 3U}) {
    const RetryRules rules{.max_retries = retries};
    for (std::uint32_t idempotent = 0; idempotent <= retries; ++idempotent) {
      Attempt attempt = stale_get();
      attempt.idempotent_retries = idempotent;
      std::uint32_t attempts = 1 + idempotent;
      for (attempt.unprocessed = RetryReason::misdirected; retry_reason(attempt, rules); ++attempts)
        ++attempt.proven_replays;
      EXPECT_EQ(attempts, retries + 8);
    }
  }
}

TEST(Retry, RepeatsPutAndDeleteOnlyWhereTheConfigurationSaysSoAndOnlyWithoutBody) {
  Attempt attempt = stale_get();
  attempt.method = "DELETE";
  EXPECT_EQ(retry_reason(attempt, {}), std::nullopt);
  EXPECT_EQ(retry_reason(attempt, {.put_and_delete = true}), RetryReason::idempotent_reused);
  attempt.has_body = true;
  EXPECT_EQ(retry_reason(attempt, {.put_and_delete = true}), std::nullopt);
}

}  // namespace
}  // namespace carpool::proxy
