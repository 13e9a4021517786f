// Unit tests of dialing: how many dials, for which borrowers, and the cost of a failed one.
#include <gtest/gtest.h>

#include "pool/destination/destination.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeEnvironment;
using test::TestBorrower;
using State = TestBorrower::State;

class Dialing : public test::PoolScene {
 protected:
  Dialing() : PoolScene(4) {}
};

BorrowRequest fresh() {
  BorrowRequest want;
  want.new_connection_only = true;
  return want;
}

TEST_F(Dialing, BeginsNoMoreThanTheCapAllows) {
  for (int n = 0; n < 6; ++n) waiting();
  EXPECT_EQ(world.dials.size(), 4U);
  EXPECT_EQ(world.opened.front(), OpenCause::first);
  EXPECT_EQ(world.opened.back(), OpenCause::all_busy);
}

TEST_F(Dialing, IsAwaitedOnlyWhereNothingOpenCanServe) {
  TestBorrower& holder = waiting();
  EXPECT_TRUE(destination().awaits_dial(holder));
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(holder.state, State::leased);
  TestBorrower& next = waiting();
  TestBorrower& retry = waiting(fresh());
  ASSERT_EQ(world.dials.size(), 2U);
  EXPECT_FALSE(destination().awaits_dial(next)) << "the holder's connection may serve it";
  EXPECT_TRUE(destination().awaits_dial(retry));
  destination().pause(world.now);
  EXPECT_FALSE(destination().awaits_dial(retry)) << "the dial serves nobody now";
  destination().resume(world.now);
  world.dialed();
  world.dialed();
  world.deliver_all();
  TestBorrower& last = waiting();
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_FALSE(destination().awaits_dial(last));
}

TEST_F(Dialing, IsAwaitedBesideSessionsByThoseWhoNeedHttp1) {
  world.next_streams = 3;
  leased();
  BorrowRequest http1;
  http1.kind = ProtocolMask::h1_only;
  TestBorrower& one = waiting(http1);
  TestBorrower& other = waiting(http1);
  ASSERT_EQ(world.dials.size(), 2U);
  EXPECT_TRUE(destination().awaits_dial(one));
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased);
  EXPECT_FALSE(destination().awaits_dial(other)) << "the other one's connection may serve it";
}

TEST_F(Dialing, IsAwaitedUntilItsResultHasArrived) {
  limits.size = 1;
  TestBorrower& one = waiting();
  TestBorrower& other = waiting();
  world.dialed();
  EXPECT_TRUE(destination().awaits_dial(one)) << "its lease is on the way";
  EXPECT_FALSE(destination().awaits_dial(other)) << "the connection serves it later";
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased);
  EXPECT_FALSE(destination().awaits_dial(one));
}

TEST_F(Dialing, IsAwaitedUntilItsFailureHasArrived) {
  TestBorrower& one = waiting();
  world.dial_failed();
  EXPECT_TRUE(destination().awaits_dial(one)) << "else the wait would end for another reason";
  world.deliver_all();
  ASSERT_EQ(one.state, State::refused);
  EXPECT_FALSE(destination().awaits_dial(one));
}

TEST_F(Dialing, GivesWhatComesFirstToWhoCameFirst) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  world.dialed(1);  // the dial that `two` caused
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(two.state, State::waiting);
}

TEST_F(Dialing, ServesAWaiterFromAReleaseAndKeepsTheSurplusConnection) {
  TestBorrower& holder = leased();
  TestBorrower& one = waiting();
  ASSERT_EQ(world.dials.size(), 1U);
  holder.release();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  world.dialed();
  EXPECT_EQ(destination().snapshot(world.now).of(ConnectionStatus::idle), 1U);
}

TEST_F(Dialing, ClosesASurplusConnectionThatIsNotClean) {
  TestBorrower& gone = waiting();
  gone.cancel();
  world.next_is_dirty = true;
  world.dialed();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::peer_closed});
}

TEST_F(Dialing, LetsItsBorrowerSeeWhatSpeaksFirst) {
  TestBorrower& one = waiting();
  world.next_is_dirty = true;
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased) << "closing it would dial for ever";
}

TEST_F(Dialing, DoesNotDialForOneWhomADialUnderWayWillServe) {
  TestBorrower& gone = waiting();
  gone.cancel();
  waiting();
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(Dialing, MovesAConnectionToTheWaitersLoop) {
  TestBorrower& one = waiting({}, 0);
  one.cancel();
  TestBorrower& two = waiting({}, 1);
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(two.state, State::leased);
  EXPECT_EQ(two.wire().watched_on, LoopId{1});
}

// ---- failures ----

TEST_F(Dialing, FailsEveryoneWithTheFaultWhenNothingIsLeft) {
  limits.size = 1;
  TestBorrower& one = waiting();
  TestBorrower& two = waiting({}, 1);
  world.dial_failed();
  EXPECT_EQ(one.state, State::waiting) << "never from inside";
  world.deliver_all();
  ASSERT_EQ(one.state, State::refused);
  EXPECT_EQ(one.fault->kind, FaultKind::connect_refused);
  EXPECT_EQ(two.state, State::refused);
  EXPECT_EQ(destination().snapshot(world.now).failures[static_cast<std::size_t>(FailureReason::refused)], 1U);
}

TEST_F(Dialing, FailsNobodyWhomALiveConnectionCanServe) {
  TestBorrower& holder = leased();
  TestBorrower& one = waiting();
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  EXPECT_TRUE(world.dials.empty()) << "not at once";
  holder.release();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(Dialing, FailsOneForEachFailedDialWhereALiveConnectionServesNobodyElse) {
  limits.max_usage = 1;
  TestBorrower& holder = leased();
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  world.dial_failed();
  world.deliver_all();
  ASSERT_EQ(one.state, State::refused);
  EXPECT_EQ(one.fault->kind, FaultKind::connect_refused);
  EXPECT_EQ(two.state, State::waiting);
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::refused);
  EXPECT_EQ(holder.state, State::leased);
}

// A dial that pool.connect_rate does not allow in time fails before it reaches the origin.
struct DialingTooOften : Dialing {
  const Fault dropped{FaultKind::rate_limited, Side::self, "too many"};
};

TEST_F(DialingTooOften, FailsNobodyWhomADialInProgressCanServe) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  world.dial_failed(1, dropped);
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  EXPECT_FALSE(snapshot().probing) << "the origin was not asked";
  EXPECT_EQ(snapshot().failures[static_cast<std::size_t>(FailureReason::budget)], 1U);
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(one.state, State::leased);
  one.release();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(DialingTooOften, FailsOneWhereEachNeedsAConnectionOfItsOwn) {
  limits.max_usage = 1;
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  world.dial_failed(1, dropped);
  world.deliver_all();
  ASSERT_EQ(one.state, State::refused);
  EXPECT_EQ(one.fault->kind, FaultKind::rate_limited);
  EXPECT_EQ(two.state, State::waiting);
}

TEST_F(DialingTooOften, FailsEveryoneWhenNothingIsLeft) {
  TestBorrower& one = waiting();
  world.dial_failed(0, dropped);
  world.deliver_all();
  ASSERT_EQ(one.state, State::refused);
  EXPECT_EQ(one.fault->kind, FaultKind::rate_limited);
  waiting();
  EXPECT_EQ(world.dials.size(), 1U) << "the next one is not held back as after a failure of the origin";
}

TEST_F(Dialing, DialsAgainAfterAPauseThatGrows) {
  leased();
  waiting();
  for (const int pause : {100, 200, 400, 800, 1000, 1000}) {
    ASSERT_EQ(world.dials.size(), 1U);
    world.wakes.clear();
    world.dial_failed();
    ASSERT_EQ(world.wakes.size(), 1U);
    EXPECT_EQ(world.wakes.front().first, world.now + milliseconds(pause));
    world.now += milliseconds(pause);
    destination().wake(world.now);
  }
}

TEST_F(Dialing, ASuccessEndsThePauseForEveryone) {
  leased();
  waiting();
  waiting();
  world.dial_failed();
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  EXPECT_EQ(world.dials.size(), 1U) << "the second waiter's";
  world.wakes.clear();
  world.dial_failed();
  EXPECT_EQ(world.wakes.front().first, world.now + milliseconds(100)) << "and the next pause is a first one";
}

TEST_F(Dialing, DialsAgainByTheSweepWhenNobodyWakesIt) {
  leased();
  waiting();
  world.dial_failed();
  world.now += milliseconds(100);
  destination().sweep(world.now);
  EXPECT_EQ(world.dials.size(), 1U);
}

TEST_F(Dialing, DoesNotPauseWhenNothingElseServes) {
  TestBorrower& one = waiting();
  world.dial_failed();
  world.deliver_all();
  ASSERT_EQ(one.state, State::refused);
  waiting();
  EXPECT_EQ(world.dials.size(), 1U) << "a new request tries at once";
}

// ---- an origin that is or may be unreachable ----

class ADeadOrigin : public test::PoolScene {
 protected:
  ADeadOrigin() : PoolScene(64) {}
  // One request after the other in one instant, each answered before the next.
  int dials_for(int requests) {
    int dials = 0;
    for (int n = 0; n < requests; ++n) {
      TestBorrower& one = waiting();
      for (; !world.dials.empty(); ++dials) world.dial_failed();
      world.deliver_all();
      EXPECT_EQ(one.state, State::refused);
      EXPECT_EQ(one.fault->kind, FaultKind::connect_refused) << "the cause of the dial that failed";
    }
    return dials;
  }
};

TEST_F(ADeadOrigin, IsDialedAFewTimesForAThousandRequestsOneAfterTheOther) {
  EXPECT_EQ(dials_for(1000), 8);
  EXPECT_EQ(snapshot().undialed, 992U);
  EXPECT_TRUE(snapshot().probing);
  rest(milliseconds(100));
  EXPECT_EQ(dials_for(100), 1) << "one more each 100 ms";
  rest(seconds(10));
  EXPECT_EQ(dials_for(100), 8) << "a rest is forgiven, but for no more than at first";
}

TEST_F(ADeadOrigin, IsDialedAFewTimesForAThousandRequestsAtOnce) {
  std::deque<TestBorrower*> all;
  for (int n = 0; n < 1000; ++n) all.push_back(&waiting({}, static_cast<LoopId>(n % 2)));
  EXPECT_EQ(world.dials.size(), 8U);
  int dials = 0;
  for (; !world.dials.empty(); ++dials) world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(dials, 8);
  for (TestBorrower* one : all) EXPECT_EQ(one->state, State::refused) << "nobody waits for the deadline";
}

TEST_F(ADeadOrigin, IsFoundAliveByOneProbeForWhichTheOthersWait) {
  dials_for(3);
  std::deque<TestBorrower*> all;
  for (int n = 0; n < 20; ++n) all.push_back(&waiting());
  EXPECT_EQ(world.dials.size(), 1U);
  world.dialed();
  EXPECT_EQ(world.dials.size(), 19U) << "it lives: whoever waits is dialed for";
  EXPECT_FALSE(destination().probing());
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  for (TestBorrower* one : all) EXPECT_EQ(one->state, State::leased);
}

TEST_F(ADeadOrigin, IsProbedAgainWhenAProbeGetsNoResponse) {
  dials_for(1);
  waiting();
  waiting();
  ASSERT_EQ(world.dials.size(), 1U);
  const Instant begun = world.now;
  rest(milliseconds(100));
  world.on(0);
  destination().wake(world.now);
  ASSERT_FALSE(world.wakes.empty());
  EXPECT_EQ(world.wakes.back().first, begun + seconds(1));
  for (std::size_t probes = 2; probes < 12; ++probes) {
    rest(seconds(1));
    world.on(0);
    waiting();
    destination().wake(world.now);
    EXPECT_EQ(world.dials.size(), std::min<std::size_t>(probes, 8));
  }
}

TEST_F(ADeadOrigin, KeepsNobodyWaitingWhenAPauseEnds) {
  dials_for(8);
  world.on(0);
  destination().pause(world.now);
  TestBorrower& one = waiting();
  world.on(0);
  destination().resume(world.now);
  world.deliver_all();
  EXPECT_EQ(one.state, State::refused);
}

TEST_F(ADeadOrigin, IsNotStormedByWhatItShallKeepReady) {
  limits.min_idle = 30;
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(world.dials.size(), 8U);
  while (!world.dials.empty()) world.dial_failed();
  rest(seconds(2));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_EQ(world.dials.size(), 1U);
}

class AColdOrigin : public ADeadOrigin {};

TEST_F(AColdOrigin, IsDialedForEverybodyAfterTheFirstSuccess) {
  for (int n = 0; n < 64; ++n) waiting();
  ASSERT_EQ(world.dials.size(), 8U);
  world.dialed();
  EXPECT_EQ(world.dials.size(), 63U) << "one round trip, not one each time the window doubles";
}

TEST_F(AColdOrigin, CountsNobodyAsWaitingForWhomThereIsAPlace) {
  limits.max_waiting = 0;
  for (int n = 0; n < 64; ++n) waiting();
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused) << "the sixty-fifth";
}

TEST_F(AColdOrigin, IsKnownForASecondAfterASuccessThoughNothingIsOpen) {
  leased().discard(CloseCause::error);
  for (int n = 0; n < 20; ++n) waiting();
  EXPECT_EQ(world.dials.size(), 20U);
}

TEST_F(Dialing, FailsOneBorrowerPerFailedDialWhileOthersAreUnderWay) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::refused);
  EXPECT_EQ(two.state, State::waiting);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
}

TEST_F(Dialing, ServesOrRefusesEveryoneWhicheverDialFails) {
  for (std::uint64_t failing = 0; failing < 12; ++failing) {
    FakeEnvironment other(2);
    Limits small;
    small.size = 3;
    Destination subject(test::origin_named("other"), small, other, 2);
    std::deque<TestBorrower> askers;
    for (int n = 0; n < 8; ++n) askers.emplace_back(other, static_cast<LoopId>(n % 2)).borrow(subject);
    std::uint64_t dial = 0;
    for (int rounds = 0; rounds < 200; ++rounds) {
      if (!other.dials.empty()) dial++ == failing ? other.dial_failed() : other.dialed();
      other.deliver_all();
      for (TestBorrower& one : askers) {
        if (one.state != State::leased) continue;
        one.discard(CloseCause::error);
        break;
      }
      other.now += milliseconds(500);
      other.on(0);
      subject.sweep(other.now);
    }
    int served = 0, refused = 0;
    for (TestBorrower& one : askers) {
      served += one.leases;
      refused += one.refusals;
    }
    EXPECT_EQ(served + refused, 8) << "dial " << failing;
    EXPECT_LE(refused, 1) << "dial " << failing;
    EXPECT_EQ(other.wrong, "");
  }
}

// ---- retries ----

TEST_F(Dialing, ARetryDialsThoughAConnectionIsIdle) {
  leased().release();
  TestBorrower& replay = waiting(fresh());
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::replay);
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(replay.state, State::leased);
  EXPECT_FALSE(replay.lease.reused());
}

TEST_F(Dialing, ARetryGoesAheadOfTheQueue) {
  limits.size = 1;
  TestBorrower& one = waiting();
  TestBorrower& replay = waiting(fresh());
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(replay.state, State::leased);
  EXPECT_EQ(one.state, State::waiting);
}

TEST_F(Dialing, AtTheCapAnIdleConnectionMakesRoomForARetry) {
  limits.size = 1;
  leased().release();
  waiting(fresh());
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::surplus});
  EXPECT_EQ(world.opened.back(), OpenCause::replay);
  EXPECT_EQ(world.most, 1U);
}

TEST_F(Dialing, AtTheCapTheNextReleasedConnectionMakesRoomForARetry) {
  limits.size = 1;
  TestBorrower& holder = leased();
  TestBorrower& replay = waiting(fresh());
  EXPECT_TRUE(world.dials.empty());
  holder.release();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::surplus});
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(replay.state, State::leased);
}

TEST_F(Dialing, AFailedDialFailsTheRetryThatOnlyItCouldServe) {
  leased();
  TestBorrower& replay = waiting(fresh());
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(replay.state, State::refused);
}

TEST_F(Dialing, ARetryIsNotRefusedForAFullQueue) {
  limits.size = 1;
  limits.max_waiting = 0;
  leased();
  waiting(fresh());
}

}  // namespace
}  // namespace carpool::pool
