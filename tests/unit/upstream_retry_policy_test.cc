// Unit tests of the retry table: the requests that may be sent again, and the reason that each needs.
#include "proxy/upstream/retry_policy.h"

#include <gtest/gtest.h>

#include "proxy/upstream/origin/retry_budget.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {
namespace {

constexpr std::array kAllResults{AttemptResult::not_sent,
                                 AttemptResult::goaway,
                                 AttemptResult::refused_stream,
                                 AttemptResult::misdirected,
                                 AttemptResult::unauthorized,
                                 AttemptResult::answered,
                                 AttemptResult::violated,
                                 AttemptResult::closed_idle,
                                 AttemptResult::closed_new,
                                 AttemptResult::refused_status,
                                 AttemptResult::reset,
                                 AttemptResult::unconnected,
                                 AttemptResult::late};
static_assert(kAllResults.size() == kAttemptResults);

StreamFailure closed() {
  StreamFailure failure;
  failure.connection_ended = true;
  return failure;
}

TEST(TheRetryTable, RepeatsAHarmlessRequestWhoseReusedConnectionEndedWithoutAByte) {
  EXPECT_EQ(retry_reason(AttemptResult::closed_idle, Repeatable::harmless), RetryReason::idempotent_reused);
}

TEST(TheRetryTable, NeverRepeatsAnotherRequestThatMayHaveBeenRead) {
  EXPECT_EQ(retry_reason(AttemptResult::closed_idle, Repeatable::whole), std::nullopt);
}

TEST(TheRetryTable, RepeatsAnyWholeRequestThatWasProvedUnprocessed) {
  for (const Repeatable request : {Repeatable::harmless, Repeatable::whole}) {
    EXPECT_EQ(retry_reason(AttemptResult::not_sent, request), RetryReason::not_sent);
    EXPECT_EQ(retry_reason(AttemptResult::goaway, request), RetryReason::goaway);
    EXPECT_EQ(retry_reason(AttemptResult::refused_stream, request), RetryReason::refused_stream);
    EXPECT_EQ(retry_reason(AttemptResult::misdirected, request), RetryReason::misdirected);
  }
}

TEST(TheRetryTable, NeverRepeatsARequestOfWhichAPartIsGone) {
  for (const AttemptResult result : kAllResults) EXPECT_EQ(retry_reason(result, Repeatable::partial), std::nullopt);
}

TEST(TheRetryTable, NeverRepeatsAfterAByteOfTheResponseOrOnANewConnectionOrAfterAViolation) {
  for (const Repeatable request : {Repeatable::harmless, Repeatable::whole}) {
    EXPECT_EQ(retry_reason(AttemptResult::answered, request), std::nullopt);
    EXPECT_EQ(retry_reason(AttemptResult::closed_new, request), std::nullopt);
    EXPECT_EQ(retry_reason(AttemptResult::violated, request), std::nullopt);
  }
}

TEST(TheRetryTable, RetriesByAConditionOnlyIdempotentRequestsUnlessNothingWasSent) {
  EXPECT_EQ(retry_reason(AttemptResult::refused_status, Repeatable::harmless), RetryReason::status);
  EXPECT_EQ(retry_reason(AttemptResult::reset, Repeatable::harmless), RetryReason::reset);
  EXPECT_EQ(retry_reason(AttemptResult::late, Repeatable::harmless), RetryReason::per_try_timeout);
  for (const AttemptResult result : {AttemptResult::refused_status, AttemptResult::reset, AttemptResult::late}) {
    EXPECT_EQ(retry_reason(result, Repeatable::whole), std::nullopt);
  }
  for (const Repeatable request : {Repeatable::harmless, Repeatable::whole}) {
    EXPECT_EQ(retry_reason(AttemptResult::unconnected, request), RetryReason::connect_failure);
  }
}

TEST(TheRetryTable, SaysWhyForEveryRequestThatItDoesNotRepeat) {
  for (const AttemptResult result : kAllResults) {
    for (const Repeatable request : {Repeatable::harmless, Repeatable::whole, Repeatable::partial}) {
      const bool told = !not_repeated_reason(result, request, true).empty();
      EXPECT_TRUE(told || retry_reason(result, request)) << static_cast<int>(result);
    }
  }
  EXPECT_NE(not_repeated_reason(AttemptResult::closed_idle, Repeatable::whole, true).find("body"),
            std::string_view::npos);
  EXPECT_NE(not_repeated_reason(AttemptResult::closed_idle, Repeatable::whole, false).find("idempotent"),
            std::string_view::npos);
  EXPECT_NE(not_repeated_reason(AttemptResult::goaway, Repeatable::partial, true).find("replay_buffer"),
            std::string_view::npos);
}

TEST(TheConditions, AreThoseThatAreNamed) {
  const RetryConditions none;
  EXPECT_FALSE(none.status(503) || none.reset() || none.connect_failure());
  const RetryConditions some({"503", "retriable-4xx", "400", "599", "reset"});
  for (const std::uint16_t code : std::initializer_list<std::uint16_t>{400, 409, 503, 599})
    EXPECT_TRUE(some.status(code)) << code;
  for (const std::uint16_t code : std::initializer_list<std::uint16_t>{0, 200, 399, 401, 500, 600, 65535})
    EXPECT_FALSE(some.status(code)) << code;
  EXPECT_TRUE(some.reset());
  EXPECT_FALSE(some.connect_failure());
  EXPECT_TRUE(RetryConditions({"connect-failure"}).connect_failure());
}

TEST(AFailure, IsAResponseIfAByteCame) {
  StreamFailure failure = closed();
  failure.any_byte_received = true;
  failure.any_byte_sent = false;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::answered);
  failure.unprocessed = RetryReason::goaway;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::answered) << "whatever the origin says";
}

TEST(AFailure, FollowsTheOriginsStatementAboutTheRequest) {
  StreamFailure failure;
  failure.unprocessed = RetryReason::goaway;
  EXPECT_EQ(failure.attempt_result(false), AttemptResult::goaway);
  failure.unprocessed = RetryReason::refused_stream;
  EXPECT_EQ(failure.attempt_result(false), AttemptResult::refused_stream);
  failure.unprocessed = RetryReason::not_sent;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::not_sent);
}

TEST(AFailure, DistinguishesAnUnsentRequestFromAClosedConnection) {
  StreamFailure failure = closed();
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::closed_idle);
  EXPECT_EQ(failure.attempt_result(false), AttemptResult::closed_new);
  failure.any_byte_sent = false;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::not_sent);
  EXPECT_EQ(failure.attempt_result(false), AttemptResult::not_sent);
}

TEST(AFailure, OfASessionThatNeverAnsweredIsThatOfANewConnectionWhoeverBorrowedItBefore) {
  StreamFailure failure = closed();
  failure.never_answered = true;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::closed_new);
  EXPECT_EQ(failure.attempt_result(true, true, true), AttemptResult::reset) << "request.retry_on names it";
  failure.any_byte_sent = false;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::not_sent);
}

TEST(AFailure, OfALiveConnectionIsAViolation) {
  StreamFailure failure;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::violated);
  failure.any_byte_sent = false;
  EXPECT_EQ(failure.attempt_result(true), AttemptResult::violated);
}

TEST(AFailure, IsAResetWhereTheOperatorNamesItAndNoByteCame) {
  for (const bool on_reset : {false, true}) {
    const AttemptResult otherwise = on_reset ? AttemptResult::reset : AttemptResult::closed_new;
    EXPECT_EQ(closed().attempt_result(false, true, on_reset), otherwise);
    EXPECT_EQ(closed().attempt_result(true, true, on_reset), AttemptResult::closed_idle);
    StreamFailure stream;
    EXPECT_EQ(stream.attempt_result(false, true, on_reset), AttemptResult::violated) << "a malformed response";
    stream.stream_reset = true;
    EXPECT_EQ(stream.attempt_result(true, true, on_reset), on_reset ? AttemptResult::reset : AttemptResult::violated);
    stream.any_byte_received = true;
    EXPECT_EQ(stream.attempt_result(true, true, on_reset), AttemptResult::answered);
  }
}

// Another attempt over HTTP/2 is refused in the same way, and one over HTTP/1.1 is not configured.
TEST(AFailure, OfAnOriginThatRequiresHttp11IsFinalUnlessHttp11IsConfigured) {
  StreamFailure failure;
  failure.stream_reset = failure.ask_h1 = true;
  failure.unprocessed = RetryReason::refused_stream;
  for (const bool on_reset : {false, true}) {
    EXPECT_EQ(failure.attempt_result(false, true, on_reset), AttemptResult::refused_stream);
    EXPECT_EQ(failure.attempt_result(false, false, on_reset), AttemptResult::violated);
  }
  failure.any_byte_received = true;
  EXPECT_EQ(failure.attempt_result(false, false, true), AttemptResult::violated) << "after an interim response, too";
}

TEST(ARequest, IsHarmlessIfItIsIdempotentAndHasNoBody) {
  for (const std::string_view method : {"GET", "HEAD", "OPTIONS", "TRACE"}) {
    EXPECT_EQ(repeatable(method, false, true, false), Repeatable::harmless);
    EXPECT_EQ(repeatable(method, true, true, true), Repeatable::whole);
  }
  EXPECT_EQ(repeatable("POST", false, true, true), Repeatable::whole);
  EXPECT_EQ(repeatable("get", false, true, true), Repeatable::whole) << "methods are case-sensitive";
}

TEST(ARequest, OfPutOrDeleteIsHarmlessOnlyWhereTheConfigurationSaysSo) {
  for (const std::string_view method : {"PUT", "DELETE"}) {
    EXPECT_EQ(repeatable(method, false, true, false), Repeatable::whole);
    EXPECT_EQ(repeatable(method, false, true, true), Repeatable::harmless);
    EXPECT_EQ(repeatable(method, true, true, true), Repeatable::whole);
  }
}

TEST(ARequest, IsPartialIfAByteOfItsBodyIsGone) {
  EXPECT_EQ(repeatable("PUT", true, false, true), Repeatable::partial);
  EXPECT_EQ(repeatable("GET", true, false, false), Repeatable::partial);
}

}  // namespace
}  // namespace carpool::proxy
