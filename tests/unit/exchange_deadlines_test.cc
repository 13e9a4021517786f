// Unit tests of ExchangeDeadlines: every row of the table, which deadline is next, and what moves it.
#include "proxy/exchange/exchange_deadlines.h"

#include <gtest/gtest.h>

#include <set>

#include "proxy/exchange/deadline_table.h"

namespace carpool::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum ExchangeState;

class TheDeadlines : public ::testing::Test {
 protected:
  TheDeadlines() {
    request_.timeout = seconds(300);
    request_.idle_timeout = seconds(20);
    request_.response_header_timeout = seconds(30);
    pool_.wait_timeout = seconds(5);
    pool_.connect_timeout = seconds(8);
    listen_.body_min_rate = 1000;
    listen_.body_grace = seconds(10);
    deadlines_.begin(now_, request_);
  }
  Instant next(ExchangeState state, bool body_ended = true) { return deadlines_.next(state, now_, body_ended); }
  Instant next_measured(ExchangeState state, std::uint64_t received, bool read) {
    deadlines_.measure(now_, received, read);
    return next(state, false);
  }
  Deadline passed(ExchangeState state, const Awaited& awaited = {}) { return deadlines_.passed(state, now_, awaited); }
  void pass(Duration time) { now_ += time; }

  Instant now_{seconds(1000)};
  config::Request request_;
  config::PoolSettings pool_;
  config::Listen listen_;
  ExchangeDeadlines deadlines_;
};

TEST_F(TheDeadlines, BoundTheWaitForAToken) {
  deadlines_.await_token(now_, seconds(4));
  EXPECT_EQ(next(authorizing), now_ + seconds(4));
  EXPECT_EQ(next(authorizing, false), now_ + seconds(4));
  pass(seconds(4));
  EXPECT_EQ(passed(authorizing), Deadline::token_wait);
  pass(seconds(300));
  EXPECT_EQ(passed(authorizing), Deadline::total);
}

TEST(TheDeadlineTable, HasOneRowForEachDeadlineThatMayPass) {
  const std::set<std::pair<ExchangeState, Deadline>> expected{
      {collecting, Deadline::total},         {collecting, Deadline::body_check},
      {collecting, Deadline::body_rate},     {collecting, Deadline::client_sends},
      {authorizing, Deadline::total},        {authorizing, Deadline::body_rate},
      {authorizing, Deadline::token_wait},   {borrowing, Deadline::total},
      {borrowing, Deadline::body_rate},      {borrowing, Deadline::pool_wait},
      {borrowing, Deadline::dial_wait},      {forwarding, Deadline::total},
      {forwarding, Deadline::body_rate},     {forwarding, Deadline::client_sends},
      {forwarding, Deadline::origin_reads},  {forwarding, Deadline::response_head},
      {relaying, Deadline::total},           {relaying, Deadline::origin_sends},
      {relaying, Deadline::client_reads},    {tunnel, Deadline::total},
      {relaying, Deadline::both_silent},     {tunnel, Deadline::both_silent},
      {tunnel, Deadline::origin_reads},      {tunnel, Deadline::client_reads},
      {forwarding, Deadline::stream_idle},   {relaying, Deadline::stream_idle},
      {tunnel, Deadline::stream_idle},       {forwarding, Deadline::attempt},
      {forwarding, Deadline::streamed_rate}, {relaying, Deadline::reader_rate},
      {forwarding, Deadline::continue_head}};
  std::set<std::pair<ExchangeState, Deadline>> rows;
  for (const DeadlineRow& row : kDeadlineTable) rows.emplace(row.state, row.deadline);
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(rows.size(), kDeadlineTable.size());
}

TEST(TheDeadlineTable, BlamesTheSideThatIsAwaited) {
  for (const DeadlineRow& row : kDeadlineTable) {
    if (row.kind == FaultKind::internal) continue;  // it ends nothing
    const bool of_client = row.deadline == Deadline::body_rate || row.deadline == Deadline::client_sends ||
                           row.deadline == Deadline::client_reads || row.deadline == Deadline::streamed_rate ||
                           row.deadline == Deadline::reader_rate;
    const bool of_origin = row.deadline == Deadline::origin_reads || row.deadline == Deadline::response_head ||
                           row.deadline == Deadline::origin_sends || row.deadline == Deadline::attempt ||
                           row.deadline == Deadline::continue_head;
    EXPECT_EQ(row.side, of_client ? Side::client : of_origin ? Side::upstream : Side::self) << row.detail;
    EXPECT_FALSE(row.detail.empty());
  }
}

TEST_F(TheDeadlines, NameOnlyADeadlineOfTheTableInEveryState) {
  for (const ExchangeState state : {collecting, authorizing, borrowing, forwarding, relaying, tunnel}) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      const Awaited awaited{(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0, (bits & 8U) != 0, (bits & 16U) != 0};
      ExchangeDeadlines deadlines;
      deadlines.begin(now_, request_);
      deadlines.wait(now_, pool_);
      EXPECT_NE(deadline_row(state, deadlines.passed(state, now_ + seconds(1), awaited)), kNoDeadlineRow);
      EXPECT_EQ(deadlines.passed(state, now_ + seconds(300), awaited), Deadline::total);
    }
  }
}

TEST_F(TheDeadlines, LookEverySecondForThoseThatAStreamedBodyHoldsUp) {
  deadlines_.measure_body(now_, listen_, RateRule::if_wanted);
  deadlines_.lease(now_);
  EXPECT_TRUE(deadlines_.measures_body(forwarding, false));
  for (const ExchangeState state : {collecting, authorizing, borrowing, relaying, tunnel}) {
    EXPECT_FALSE(deadlines_.measures_body(state, false)) << "it has no connection, or the origin answers";
  }
  EXPECT_EQ(next_measured(forwarding, 0, true), now_ + seconds(10));
  pass(seconds(10));
  EXPECT_EQ(passed(forwarding), Deadline::streamed_rate);
  deadlines_.check_again(now_);
  EXPECT_EQ(next_measured(forwarding, 1, true), now_ + seconds(1)) << "a byte causes no look";
  pass(seconds(1));
  EXPECT_EQ(passed(forwarding), Deadline::streamed_rate);
  deadlines_.check_again(now_);
  EXPECT_EQ(next_measured(forwarding, 5000, true), now_ + seconds(4)) << "it has become faster";
  deadlines_.allow_silence();
  EXPECT_FALSE(deadlines_.measures_body(forwarding, false));
}

TEST_F(TheDeadlines, LetALookExtendNoOtherDeadline) {
  deadlines_.measure_body(now_, listen_, RateRule::if_wanted);
  deadlines_.lease(now_);
  const Instant idle = now_ + seconds(20);
  EXPECT_EQ(next_measured(forwarding, 0, true), now_ + seconds(10));
  pass(seconds(10));
  EXPECT_EQ(deadlines_.check_again(now_), now_ + seconds(1));
  pass(seconds(9));
  EXPECT_EQ(deadlines_.check_again(now_), idle) << "both at once";
  pass(seconds(1));
  EXPECT_EQ(passed(forwarding), Deadline::streamed_rate);
  EXPECT_EQ(deadlines_.check_again(now_), idle);
  EXPECT_EQ(passed(forwarding), Deadline::client_sends);
}

// Whatever an earlier state left, the deadline that is named has a row: the exchange aborts the program otherwise.
TEST_F(TheDeadlines, NameNoDeadlineOfAnotherState) {
  deadlines_.check_body(now_);
  deadlines_.measure_body(now_, listen_, RateRule::always);
  deadlines_.measure(now_, 0, true);
  deadlines_.wait(now_, pool_);
  pass(seconds(200));
  for (const ExchangeState state : {collecting, authorizing, borrowing, forwarding, relaying, tunnel}) {
    for (const unsigned bits : {0U, 1U, 2U, 4U, 7U}) {
      const Awaited awaited{
          .body_ended = (bits & 1) != 0, .origin_queued = (bits & 2) != 0, .client_queued = (bits & 4) != 0};
      EXPECT_NE(deadline_row(state, passed(state, awaited)), kNoDeadlineRow) << static_cast<int>(state) << " " << bits;
    }
  }
}

TEST_F(TheDeadlines, OfAnAttemptCountFromTheWholeRequestAndEndWithTheHead) {
  request_.per_try_timeout = seconds(4);
  deadlines_.lease(now_);
  pass(seconds(3));
  deadlines_.sent(now_);
  EXPECT_EQ(next(forwarding, true), now_ + seconds(4));
  EXPECT_GT(next(forwarding, false), now_ + seconds(4)) << "a slow client is not the origin's failure";
  EXPECT_EQ(next(relaying, true), now_ + seconds(20));
  pass(seconds(4));
  EXPECT_EQ(passed(forwarding, {.body_ended = true}), Deadline::attempt);
  EXPECT_NE(passed(forwarding, {.body_ended = false}), Deadline::attempt);
  deadlines_.lease(now_);
  EXPECT_EQ(next(forwarding, true), now_ + seconds(4)) << "each attempt has its own";
}

TEST_F(TheDeadlines, EndNoSilentStreamButOneWhoseBytesAreNotTaken) {
  deadlines_.allow_silence();
  deadlines_.lease(now_);
  pass(seconds(100));
  for (const ExchangeState state : {forwarding, relaying, tunnel}) {
    for (const bool ended : {false, true}) {
      EXPECT_EQ(next(state, ended), now_ + seconds(20)) << "it comes again, and not at once";
      EXPECT_EQ(passed(state, {.body_ended = ended}), Deadline::stream_idle);
    }
  }
  EXPECT_EQ(passed(relaying, {.client_queued = true}), Deadline::client_reads);
  EXPECT_EQ(passed(tunnel, {.client_queued = true}), Deadline::client_reads);
  EXPECT_EQ(passed(tunnel, {.origin_queued = true}), Deadline::origin_reads);
  EXPECT_EQ(passed(relaying, {.origin_queued = true}), Deadline::origin_sends);
  EXPECT_EQ(passed(forwarding, {.body_ended = true, .origin_queued = true}), Deadline::origin_reads);
  pass(seconds(200));
  for (const ExchangeState state : {forwarding, relaying, tunnel}) EXPECT_EQ(passed(state), Deadline::total);
}

TEST_F(TheDeadlines, DoNotExistInAnIdleExchange) {
  EXPECT_DEATH(next(idle), "");
  EXPECT_DEATH(passed(idle), "");
}

TEST_F(TheDeadlines, AreBoundedByTheRequestsTimeoutInEveryState) {
  for (const ExchangeState state : {collecting, authorizing, borrowing, forwarding, relaying, tunnel}) {
    ExchangeDeadlines deadlines;
    request_.idle_timeout = request_.response_header_timeout = Duration::zero();
    deadlines.begin(now_, request_);
    EXPECT_EQ(deadlines.next(state, now_ + seconds(2), true), now_ + seconds(300));
  }
}

TEST_F(TheDeadlines, AreNoneWhereNoTimeIsConfigured) {
  request_ = {};
  request_.idle_timeout = request_.response_header_timeout = Duration::zero();
  deadlines_.begin(now_, request_);
  for (const ExchangeState state : {collecting, forwarding, relaying, tunnel}) EXPECT_EQ(next(state), kNever);
}

TEST_F(TheDeadlines, GiveAClientItsIdleTimeFromItsLastByteWhileTheBodyIsCollected) {
  pass(seconds(7));
  EXPECT_EQ(next(collecting), now_ + seconds(20));
  EXPECT_EQ(passed(collecting), Deadline::client_sends);
}

TEST_F(TheDeadlines, LookAtALargeBodyOnceBeforeItsIdleTime) {
  deadlines_.check_body(now_ + milliseconds(200));
  EXPECT_EQ(next(collecting), now_ + milliseconds(200));
  pass(milliseconds(200));
  EXPECT_EQ(passed(collecting), Deadline::body_check);
  deadlines_.body_may_be_sent();
  EXPECT_EQ(next(collecting), now_ + seconds(20));
}

TEST_F(TheDeadlines, BoundTheWaitForAConnectionRegardlessOfTraffic) {
  deadlines_.wait(now_, pool_);
  const Instant until = now_ + seconds(5);
  pass(seconds(3));
  EXPECT_EQ(next(borrowing), until);
  EXPECT_EQ(deadlines_.waited(now_), seconds(3));
  pass(seconds(2));
  EXPECT_EQ(passed(borrowing), Deadline::pool_wait);
}

TEST_F(TheDeadlines, LeaveADialInProgressItsOwnTimeAndTimeToReport) {
  deadlines_.wait(now_, pool_);
  const Instant dial = now_ + seconds(8);
  pass(seconds(5));
  EXPECT_EQ(passed(borrowing, {.dialing = true}), Deadline::dial_wait);
  deadlines_.await_dial(now_);
  EXPECT_EQ(next(borrowing), now_ + milliseconds(250)) << "another request may get the connection";
  pass(milliseconds(250));
  EXPECT_EQ(passed(borrowing), Deadline::pool_wait);
  EXPECT_EQ(passed(borrowing, {.dialing = true}), Deadline::dial_wait);
  pass(milliseconds(2500));
  deadlines_.await_dial(now_);
  EXPECT_EQ(next(borrowing), dial + milliseconds(100));
  pass(milliseconds(350));
  EXPECT_EQ(passed(borrowing, {.dialing = true}), Deadline::pool_wait) << "only once";
}

TEST_F(TheDeadlines, LeaveADialTimeToReportThatEndsTogetherWithTheWait) {
  pool_.connect_timeout = pool_.wait_timeout;
  deadlines_.wait(now_, pool_);
  pass(pool_.wait_timeout);
  EXPECT_EQ(passed(borrowing), Deadline::pool_wait);
  EXPECT_EQ(passed(borrowing, {.dialing = true}), Deadline::dial_wait);
  deadlines_.await_dial(now_);
  EXPECT_EQ(next(borrowing), now_ + milliseconds(100));
  pass(milliseconds(100));
  EXPECT_EQ(passed(borrowing, {.dialing = true}), Deadline::pool_wait) << "only once";
}

TEST_F(TheDeadlines, EndTheWaitWithTheLease) {
  deadlines_.wait(now_, pool_);
  pass(seconds(1));
  deadlines_.lease(now_);
  EXPECT_EQ(next(forwarding), now_ + seconds(30));
  EXPECT_EQ(next(borrowing), now_ + seconds(299)) << "a retry waits anew";
}

TEST_F(TheDeadlines, GiveAResponseHeadItsTimeFromTheLastByteSentAndNotFromTheLastByteRead) {
  deadlines_.lease(now_);
  const Instant sent = now_;
  pass(seconds(4));
  EXPECT_EQ(next(forwarding), sent + seconds(30));
  deadlines_.sent(now_);
  EXPECT_EQ(next(forwarding), now_ + seconds(30));
  pass(seconds(30));
  EXPECT_EQ(passed(forwarding, {.body_ended = true}), Deadline::response_head);
}

TEST_F(TheDeadlines, ExtendTheTimeOfAHeadWithInformationalHeadsToTwiceTheLimit) {
  deadlines_.lease(now_);
  const Instant sent = now_;
  EXPECT_FALSE(deadlines_.informed());
  pass(seconds(20));
  deadlines_.inform(now_);
  EXPECT_TRUE(deadlines_.informed());
  EXPECT_EQ(next(forwarding), sent + seconds(50));
  pass(seconds(25));
  deadlines_.inform(now_);
  EXPECT_EQ(next(forwarding), sent + seconds(60));
}

TEST_F(TheDeadlines, DistinguishASilentClientFromAnOriginThatReadsNoBody) {
  deadlines_.lease(now_);
  EXPECT_EQ(next(forwarding, false), now_ + seconds(20));
  pass(seconds(20));
  EXPECT_EQ(passed(forwarding), Deadline::client_sends);
  EXPECT_EQ(passed(forwarding, {.origin_queued = true}), Deadline::origin_reads);
}

TEST_F(TheDeadlines, BlameTheOriginWhileTheClientWaitsForItsContinue) {
  deadlines_.lease(now_);
  EXPECT_EQ(next(forwarding, false), now_ + seconds(20));
  pass(seconds(20));
  EXPECT_EQ(passed(forwarding, {.continues = true}), Deadline::continue_head);
  EXPECT_EQ(passed(forwarding, {.origin_queued = true, .continues = true}), Deadline::origin_reads);
  EXPECT_EQ(passed(forwarding, {.body_ended = true, .continues = true}), Deadline::response_head) << "no body follows";
}

TEST_F(TheDeadlines, DistinguishASilentOriginFromAClientThatReadsNoResponse) {
  for (const ExchangeState state : {relaying, tunnel}) {
    pass(seconds(1));
    EXPECT_EQ(next(state), now_ + seconds(20));
    EXPECT_EQ(passed(state, {.body_ended = true, .client_queued = true}), Deadline::client_reads);
    EXPECT_EQ(passed(state, {.client_queued = true}), Deadline::client_reads);
  }
  EXPECT_EQ(passed(relaying, {.body_ended = true}), Deadline::origin_sends);
}

TEST_F(TheDeadlines, BlameNobodyForASilenceInWhichTheClientMaySend) {
  EXPECT_EQ(passed(relaying, {.body_ended = false}), Deadline::both_silent);
  EXPECT_EQ(passed(relaying, {.body_ended = false, .origin_queued = true}), Deadline::origin_sends);
  for (const bool ended : {false, true}) {
    EXPECT_EQ(passed(tunnel, {.body_ended = ended}), Deadline::both_silent);
    EXPECT_EQ(passed(tunnel, {.body_ended = ended, .origin_queued = true}), Deadline::origin_reads);
  }
}

TEST_F(TheDeadlines, MeasureABodyUntilItEndsOrTheResponseBegins) {
  EXPECT_FALSE(deadlines_.measures_body(collecting, false)) << "not begun";
  deadlines_.measure_body(now_, listen_, RateRule::always);
  for (const ExchangeState state : {collecting, borrowing, forwarding}) {
    EXPECT_TRUE(deadlines_.measures_body(state, false));
    EXPECT_FALSE(deadlines_.measures_body(state, true));
  }
  EXPECT_FALSE(deadlines_.measures_body(relaying, false));
  EXPECT_FALSE(deadlines_.measures_body(tunnel, false));
  EXPECT_EQ(next_measured(collecting, 0, true), now_ + seconds(10));
  deadlines_.do_not_measure();
  EXPECT_EQ(next(collecting), now_ + seconds(20));
}

TEST_F(TheDeadlines, EndABodyThatArrivesTooSlowly) {
  deadlines_.measure_body(now_, listen_, RateRule::always);
  pass(seconds(9));
  EXPECT_EQ(next_measured(collecting, 2000, true), now_ + seconds(3));
  pass(seconds(3));
  EXPECT_EQ(passed(collecting), Deadline::body_rate);
}

TEST_F(TheDeadlines, DoNotCountTimeInWhichTheClientIsNotRead) {
  deadlines_.measure_body(now_, listen_, RateRule::always);
  deadlines_.lease(now_);
  pass(seconds(15));
  EXPECT_EQ(next_measured(forwarding, 500, false), now_ + seconds(5)) << "the origin's time alone";
  pass(seconds(1));
  deadlines_.origin_accepted(now_, 500);
  EXPECT_EQ(next_measured(forwarding, 500, true), now_ + seconds(10)) << "a new grace period";
  pass(seconds(2));
  deadlines_.origin_accepted(now_, 500);
  EXPECT_EQ(next_measured(forwarding, 500, true), now_ + seconds(8)) << "it was read: no new one";
}

TEST_F(TheDeadlines, LookEverySecondForThoseThatASlowReaderHoldsUp) {
  deadlines_.measure_reader(now_, listen_, 7000);
  EXPECT_EQ(next(relaying), now_ + seconds(10)) << "what was accepted before the reader was behind does not count";
  pass(seconds(10));
  EXPECT_EQ(passed(relaying, {.client_queued = true}), Deadline::reader_rate);
  deadlines_.check_again(now_);
  deadlines_.measure_reader(now_, listen_, 7001);
  EXPECT_EQ(next(relaying), now_ + seconds(1)) << "a byte causes no look";
  pass(seconds(1));
  EXPECT_EQ(passed(relaying, {.client_queued = true}), Deadline::reader_rate);
  deadlines_.measure_reader(now_, listen_, 17000);
  EXPECT_EQ(next(relaying), now_ + seconds(9)) << "it has become faster";
}

TEST_F(TheDeadlines, LetALookAtAReaderExtendNoOtherDeadline) {
  deadlines_.measure_reader(now_, listen_, 0);
  const Instant idle = now_ + seconds(20);
  EXPECT_EQ(next(relaying), now_ + seconds(10));
  pass(seconds(10));
  EXPECT_EQ(deadlines_.check_again(now_), now_ + seconds(1));
  pass(seconds(9));
  EXPECT_EQ(passed(relaying, {.client_queued = true}), Deadline::reader_rate);
  EXPECT_EQ(deadlines_.check_again(now_), idle) << "both at once";
  pass(seconds(1));
  EXPECT_EQ(passed(relaying, {.client_queued = true}), Deadline::client_reads);
}

TEST_F(TheDeadlines, DoNotCountTimeInWhichNoByteWaitsForTheReader) {
  deadlines_.measure_reader(now_, listen_, 0);
  pass(seconds(9));
  deadlines_.reader_caught_up();
  EXPECT_EQ(next(relaying), now_ + seconds(20)) << "the origin's time alone";
  pass(seconds(9));
  EXPECT_EQ(passed(relaying, {.body_ended = true}), Deadline::origin_sends);
  deadlines_.measure_reader(now_, listen_, 500);
  EXPECT_EQ(next(relaying), now_ + seconds(10)) << "a new grace period";
}

TEST_F(TheDeadlines, MeasureNoReaderOfAStreamThatMayBeSilentOrWithoutARate) {
  listen_.body_min_rate = 0;
  deadlines_.measure_reader(now_, listen_, 0);
  EXPECT_EQ(next(relaying), now_ + seconds(20));
  deadlines_.reader_caught_up();
  listen_.body_min_rate = 500;
  deadlines_.allow_silence();
  deadlines_.measure_reader(now_, listen_, 0);
  EXPECT_EQ(next(relaying), now_ + seconds(20));
}

TEST_F(TheDeadlines, DoNotTakeTheRateOfABodyForThatOfAReader) {
  deadlines_.measure_body(now_, listen_, RateRule::always);
  deadlines_.measure(now_, 0, true);
  pass(seconds(15));
  EXPECT_EQ(passed(forwarding), Deadline::body_rate);
  EXPECT_EQ(passed(relaying, {.body_ended = true}), Deadline::origin_sends);
}

TEST_F(TheDeadlines, KeepTheRequestsTimeoutAtAnotherDestination) {
  config::Request other = request_;
  other.timeout = seconds(1);
  other.response_header_timeout = seconds(400);
  deadlines_.use(other);
  deadlines_.lease(now_);
  EXPECT_EQ(next(forwarding), now_ + seconds(300));
}

}  // namespace
}  // namespace carpool::proxy
