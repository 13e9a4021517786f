// Unit tests of a destination whose size follows the load: what it measures, and that every change is exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pool/directory/explain.h"
#include "pool/directory/explain_size.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class AutoSized : public test::PoolScene {
 protected:
  AutoSized() : PoolScene(2) {
    limits.min_size = 2;
    limits.max_size = 16;
  }
  std::uint32_t size() { return snapshot().size; }
  // Records `count` responses for the user of a lease.
  void answered(TestBorrower& one, int count, Duration took, std::uint16_t status = 200) {
    world.on(one.loop());
    for (int n = 0; n < count; ++n) one.lease.note_response(status, took);
  }
  // The next measurement is complete at its end.
  void measure() {
    rest(seconds(10));
    world.on(0);
    destination().sweep(world.now);
    world.deliver_all();
  }
  void open_all() {
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
  }
  std::vector<TestBorrower*> many(int count) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < count; ++n) {
      all.push_back(&borrower_on(static_cast<LoopId>(n % 2)));
      static_cast<void>(all.back()->borrow(destination()));
    }
    open_all();
    return all;
  }
  int leases(const std::vector<TestBorrower*>& all) {
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [](const TestBorrower* one) { return one->state == State::leased; }));
  }
  // Grows to 4: four requests for two connections, of which two wait.
  std::vector<TestBorrower*> grown_to_4() {
    destination().sweep(world.now);
    std::vector<TestBorrower*> all = many(4);
    answered(*all[0], 100, milliseconds(5));
    measure();
    EXPECT_EQ(size(), 4U);
    open_all();
    EXPECT_EQ(leases(all), 4);
    return all;
  }
};

TEST_F(AutoSized, BeginsWithTheLeastAndGrowsWhenRequestsWait) {
  const std::vector<TestBorrower*> all = many(4);
  EXPECT_EQ(leases(all), 2);
  EXPECT_EQ(size(), 2U);
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 4U);
  open_all();
  EXPECT_EQ(leases(all), 4);
  ASSERT_EQ(world.resized.size(), 1U);
  EXPECT_EQ(world.resized[0].reason, SizeReason::waits);
  EXPECT_EQ(world.resized[0].seen.responses, 100U);
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, ARequestThatFoundTheQueueFullCountsAsOneThatWaited) {
  limits.max_waiting = 0;
  destination().sweep(world.now);
  const std::vector<TestBorrower*> all = many(4);
  EXPECT_EQ(leases(all), 2);
  EXPECT_EQ(snapshot().waiting, 0U);
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 4U);
  EXPECT_EQ(world.resized.at(0).seen.late, 2U);
}

TEST_F(AutoSized, AWaitThatEndedCountsIfItWasLong) {
  destination().sweep(world.now);
  const std::vector<TestBorrower*> all = many(3);
  answered(*all[0], 100, milliseconds(5));
  rest(milliseconds(2));
  all[0]->release();
  world.deliver_all();
  EXPECT_EQ(leases(all), 2);
  measure();
  EXPECT_EQ(size(), 4U);
  EXPECT_EQ(world.resized.at(0).seen.late, 1U);
}

TEST_F(AutoSized, AShortWaitIsNoReasonToGrow) {
  destination().sweep(world.now);
  const std::vector<TestBorrower*> all = many(3);
  answered(*all[0], 100, milliseconds(5));
  rest(milliseconds(1));
  all[0]->release();
  world.deliver_all();
  measure();
  EXPECT_EQ(size(), 2U);
}

TEST_F(AutoSized, WaitsThatTheSizeDidNotCauseAreNoReasonToGrow) {
  destination().pause(world.now);
  destination().sweep(world.now);
  const std::vector<TestBorrower*> all = many(4);
  measure();
  EXPECT_EQ(size(), 2U);
  destination().resume(world.now);
  open_all();
  EXPECT_EQ(leases(all), 2);
}

TEST_F(AutoSized, WaitsForDialsThatTheOriginDoesNotAnswerAreNoReasonToGrow) {
  destination().sweep(world.now);
  const std::vector<TestBorrower*> all = many(2);
  answered(*all[0], 100, milliseconds(5));
  measure();
  for (TestBorrower* one : all) one->discard(CloseCause::error);
  for (const LoopId loop : {LoopId{0}, LoopId{0}, LoopId{1}, LoopId{1}})
    EXPECT_EQ(borrower_on(loop).borrow(destination()), State::waiting);
  EXPECT_EQ(world.dials.size(), 2U);
  measure();
  EXPECT_EQ(size(), 2U);
}

TEST_F(AutoSized, ShrinkingClosesIdleConnectionsAtOnceAndLentOnesOnReturn) {
  const std::vector<TestBorrower*> all = grown_to_4();
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 4U) << "the growth stays";
  all[3]->release();
  answered(*all[0], 5, milliseconds(5), 503);
  answered(*all[0], 5, milliseconds(5), 429);
  measure();
  EXPECT_EQ(size(), 2U) << "a quarter less than the three that were in use";
  EXPECT_EQ(snapshot().alive(), 3U) << "the idle one closed, none that is lent";
  EXPECT_EQ(leases(all), 3);
  EXPECT_EQ(audited(), "");
  TestBorrower& late = borrower_on();
  EXPECT_EQ(late.borrow(destination()), State::waiting);
  all[0]->release();
  world.deliver_all();
  EXPECT_EQ(snapshot().alive(), 2U);
  EXPECT_EQ(late.state, State::waiting) << "what is returned above the size closes instead of serving";
  all[1]->release();
  world.deliver_all();
  EXPECT_EQ(late.state, State::leased);
  EXPECT_EQ(snapshot().closed[static_cast<std::size_t>(CloseCause::surplus)], 2U);
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, Answers503AndAnswers429EachShrinkIt) {
  for (const std::uint16_t status : {std::uint16_t{503}, std::uint16_t{429}}) {
    destination().restore_size(16);
    const std::vector<TestBorrower*> all = many(8);
    measure();
    answered(*all[0], 92, milliseconds(5));
    answered(*all[0], 8, milliseconds(5), status);
    measure();
    ASSERT_EQ(size(), 6U) << status << ": a quarter less than the eight that were in use";
    EXPECT_EQ(world.resized.back().reason, SizeReason::refused);
    EXPECT_EQ(world.resized.back().seen.responses, 92U);
    for (TestBorrower* one : all) one->release();
  }
}

TEST_F(AutoSized, ARequestThatIsNotAnsweredInTimeCountsOnce) {
  destination().restore_size(16);
  const std::vector<TestBorrower*> all = many(8);
  measure();
  for (int n = 0; n < 8; ++n) {
    destination().note_failure(Fault(FaultKind::response_timeout, Side::upstream, "late"));
  }
  answered(*all[0], 92, milliseconds(5));
  measure();
  ASSERT_EQ(size(), 6U);
  EXPECT_EQ(world.resized.at(0).seen.refused, 8U);
  measure();  // settles
  answered(*all[0], 100, milliseconds(5));
  measure();
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 6U) << "they ended before";
  EXPECT_EQ(world.resized.size(), 1U);
}

TEST_F(AutoSized, SlowerResponsesTakeAGrowthBack) {
  const std::vector<TestBorrower*> all = grown_to_4();
  measure();  // the effect of the change
  answered(*all[0], 100, milliseconds(10));
  measure();
  EXPECT_EQ(size(), 2U) << "twice the time with twice the size";
  EXPECT_EQ(world.resized.back().reason, SizeReason::latency);
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, RefusedDialsLeaveTheConnectionsThatTheOriginAccepted) {
  const std::vector<TestBorrower*> all = grown_to_4();
  measure();
  answered(*all[0], 100, milliseconds(5));
  measure();
  std::vector<TestBorrower*> more = many(8);
  answered(*all[0], 100, milliseconds(5));
  rest(seconds(10));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(size(), 8U);
  measure();  // the effect of the change; the dials have not ended
  world.dialed();
  while (!world.dials.empty()) world.dial_failed();
  world.deliver_all();
  answered(*all[0], 100, milliseconds(5));
  rest(seconds(10));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(world.resized.back().reason, SizeReason::dials);
  EXPECT_EQ(size(), 5U);
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, NewBoundsApplyAtOnceAndAFixedSizeEndsIt) {
  const std::vector<TestBorrower*> all = grown_to_4();
  limits.min_size = 1;
  limits.max_size = 3;
  destination().set_limits(limits, world.now);
  EXPECT_EQ(size(), 3U);
  EXPECT_EQ(destination().limits().size, 3U);
  ASSERT_TRUE(snapshot().auto_size);
  EXPECT_EQ(snapshot().auto_size->max_size, 3U);
  EXPECT_EQ(audited(), "");
  limits.min_size = limits.max_size = 0;
  limits.size = 7;
  destination().set_limits(limits, world.now);
  EXPECT_EQ(size(), 7U);
  EXPECT_FALSE(snapshot().auto_size);
  const std::vector<TestBorrower*> more = many(8);
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 7U);
  limits.min_size = 2;
  limits.max_size = 16;
  limits.size = 2;
  destination().set_limits(limits, world.now);
  EXPECT_EQ(size(), 7U) << "the load shows whether it fits";
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, ASizeThatThePredecessorLearnedIsTakenOverWithinTheBounds) {
  destination().restore_size(9);
  EXPECT_EQ(size(), 9U);
  EXPECT_EQ(audited(), "");
  destination().restore_size(100);
  EXPECT_EQ(size(), 16U);
  limits.min_size = limits.max_size = 0;
  destination().set_limits(limits, world.now);
  destination().restore_size(9);
  EXPECT_EQ(size(), 2U) << "it is fixed now";
}

TEST_F(AutoSized, HalfOfTheSizeIsForTunnels) {
  limits.half_tunnels = true;
  const std::vector<TestBorrower*> all = many(4);
  EXPECT_EQ(destination().limits().max_tunnels, 1U);
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(destination().limits().max_tunnels, 2U);
}

class AutoSizedTunnels : public AutoSized {
 protected:
  AutoSizedTunnels() { limits.half_tunnels = true; }
  // Begins the measurement and opens the only tunnel that the smallest size permits, to an origin that responds.
  TestBorrower& opened() {
    destination().sweep(world.now);
    TestBorrower& one = borrower_on();
    static_cast<void>(one.borrow(destination(), tunnel()));
    open_all();
    EXPECT_EQ(one.state, State::leased);
    one.lease.become_tunnel();
    answered(one, 100, milliseconds(5));
    return one;
  }
  TestBorrower& waiting() {
    TestBorrower& one = borrower_on();
    EXPECT_EQ(one.borrow(destination(), tunnel()), State::waiting);
    return one;
  }
  static BorrowRequest tunnel() {
    BorrowRequest want;
    want.tunnel = true;
    return want;
  }
};

TEST_F(AutoSizedTunnels, AWaitForAPlaceIsAReasonToGrow) {
  opened();
  measure();
  EXPECT_EQ(size(), 2U);
  TestBorrower& other = waiting();
  measure();
  EXPECT_EQ(size(), 4U) << "tunnels answer nothing more, and the origin owes nothing";
  EXPECT_EQ(world.resized.at(0).reason, SizeReason::waits);
  open_all();
  EXPECT_EQ(other.state, State::leased);
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSizedTunnels, ALongWaitForAPlaceCountsAfterItsEnd) {
  TestBorrower& one = opened();
  TestBorrower& other = waiting();
  rest(milliseconds(2));
  one.discard(CloseCause::tunnel_ended);
  open_all();
  EXPECT_EQ(other.state, State::leased);
  measure();
  EXPECT_EQ(size(), 4U);
  EXPECT_EQ(world.resized.at(0).seen.late, 1U);
}

TEST_F(AutoSizedTunnels, ATunnelThatFoundTheQueueFullCountsAsOneThatWaited) {
  limits.max_waiting = 0;
  opened();
  EXPECT_EQ(borrower_on().borrow(destination(), tunnel()), State::refused);
  measure();
  EXPECT_EQ(size(), 4U);
}

TEST_F(AutoSizedTunnels, DoNotLetItGrowBesideARequestThatTheOriginDoesNotAnswer) {
  opened();
  measure();
  static_cast<void>(borrower_on().borrow(destination()));
  open_all();
  waiting();
  measure();
  EXPECT_EQ(size(), 2U);
}

TEST_F(AutoSizedTunnels, DoNotLetItGrowBehindOneWhoseDialTheOriginDoesNotAnswer) {
  TestBorrower& one = opened();
  measure();
  one.discard(CloseCause::tunnel_ended);
  waiting();
  waiting();
  EXPECT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(snapshot().waiting_for_place, 1U);
  measure();
  EXPECT_EQ(size(), 2U);
}

TEST_F(AutoSizedTunnels, DoNotLetItGrowDuringAPause) {
  limits.max_waiting = 1;
  opened();
  measure();
  destination().pause(world.now);
  waiting();
  EXPECT_EQ(borrower_on().borrow(destination(), tunnel()), State::refused);
  measure();
  EXPECT_EQ(size(), 2U);
  destination().resume(world.now);
}

TEST_F(AutoSizedTunnels, WithALimitOfTheirOwnDoNotLetItGrow) {
  limits.half_tunnels = false;
  limits.max_tunnels = 1;
  opened();
  waiting();
  measure();
  EXPECT_EQ(size(), 2U);
}

TEST_F(AutoSized, TheSharesOfClassesFollowTheSize) {
  limits.classes = 2;
  const std::vector<TestBorrower*> all = many(4);
  EXPECT_EQ(snapshot().classes[1].limit, 1U) << "one place of two is kept for the higher class";
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 4U);
  EXPECT_EQ(snapshot().classes[1].limit, 3U);
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, ManySessionsShareTheSizeByTheirStreams) {
  limits.expected_streams = 2;
  limits.size = limits.min_size = 1;
  world.next_streams = 2;
  destination().sweep(world.now);
  const std::vector<TestBorrower*> all = many(5);
  EXPECT_EQ(leases(all), 2);
  answered(*all[0], 100, milliseconds(5));
  measure();
  EXPECT_EQ(size(), 2U);
  open_all();
  EXPECT_EQ(leases(all), 4);
  answered(*all[0], 50, milliseconds(5), 503);
  measure();
  measure();
  EXPECT_EQ(audited(), "");
}

TEST_F(AutoSized, WhatHappenedUnderAFixedSizeIsNoReasonForAChange) {
  const Limits follows = limits;
  destination().restore_size(8);
  Limits fixed = limits;
  fixed.min_size = fixed.max_size = 0;
  fixed.size = 8;
  destination().set_limits(fixed, world.now);
  for (int n = 0; n < 500; ++n) {
    destination().note_failure(Fault(FaultKind::response_timeout, Side::upstream, "late"));
  }
  rest(std::chrono::hours(24 * 7));
  world.on(0);
  destination().set_limits(follows, world.now);
  measure();
  EXPECT_EQ(size(), 8U);
  EXPECT_TRUE(world.resized.empty());
}

TEST_F(AutoSized, EachChangeIsExplainedWithItsEvidence) {
  const std::vector<TestBorrower*> all = grown_to_4();
  rest(seconds(2));
  const std::vector<std::string> lines = explain(snapshot(), {});
  const auto said = [&](const std::string& text) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(said("The size follows the load, from 2 to 16 (pool.size is \"auto\"): it has changed 1 time: 1 waits."));
  EXPECT_TRUE(
      said("2.0 s ago it went from 2 to 4 because 2 requests waited too long for a connection; the median time "
           "to a response was 5 ms (reason waits)."));
  SizeChange change{{}, 9, 5, SizeReason::refused, {}, {}};
  change.seen.refused = 12;
  change.seen.responses = 128;
  EXPECT_EQ(why_resized(change), "the origin answered 429 or 503, or not in time, to 12 of 140 requests");
  change.reason = SizeReason::dials;
  change.seen.dials_refused = 1;
  change.seen.open = 5;
  EXPECT_EQ(why_resized(change), "the origin refused 1 dial beside the 5 connections that it had accepted");
}

}  // namespace
}  // namespace carpool::pool
