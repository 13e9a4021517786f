// Unit tests of the pause that an origin requests with Retry-After: waiting requests are held in order, then one of
// them is a trial.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class Cooled : public test::PoolScene {
 protected:
  Cooled() : PoolScene(4) { limits.max_cool_down = seconds(60); }
  void TearDown() override {
    world.on(0);
    destination().resume(world.now);
    PoolScene::TearDown();
  }
  void wake_when_asked() {
    ASSERT_FALSE(world.wakes.empty());
    const auto [when, where] = world.wakes.back();
    world.wakes.clear();
    world.now = std::max(world.now, when);
    world.on(0);
    where->wake(world.now);
    world.deliver_all();
  }
  // A wake-up that was requested for an earlier reason requests the next one.
  void wake_at(Instant when) {
    while (world.now < when && !HasFailure()) wake_when_asked();
    EXPECT_EQ(world.now, when);
  }
  // An idle connection, and the pause.
  void cool(Duration time) {
    idle_connection();
    destination().cool_down(time, 429, world.now);
  }
  void pass(TestBorrower& one) {
    world.on(one.loop());
    EXPECT_TRUE(one.lease.pass_trial(world.now));
    world.deliver_all();
  }
  int leased_among(const std::vector<TestBorrower*>& all) {
    int count = 0;
    for (const TestBorrower* one : all) count += one->state == State::leased ? 1 : 0;
    return count;
  }
  // The first of them gets no response in time, so the second is a trial, too.
  std::vector<TestBorrower*> two_trials_of(int count) {
    cool(seconds(5));
    std::vector<TestBorrower*> all = line_of(count);
    wake_at(world.now + seconds(5));
    EXPECT_EQ(leased_among(all), 1);
    wake_at(world.now + CoolDown::kTrialTime);
    EXPECT_EQ(world.dials.size(), 1U) << "one dial, for one more trial";
    world.dialed();
    world.deliver_all();
    EXPECT_EQ(leased_among(all), 2);
    EXPECT_TRUE(all[1]->lease.trial());
    return all;
  }
  std::vector<TestBorrower*> line_of(int count) {
    std::vector<TestBorrower*> all;
    for (int n = 0; n < count; ++n) all.push_back(&waiting({}, static_cast<LoopId>(n % 2)));
    return all;
  }
};

TEST_F(Cooled, NothingIsLentOrDialedUntilTheTimeThatTheOriginNamed) {
  TestBorrower& busy = leased();
  EXPECT_TRUE(destination().cool_down(seconds(7), 429, world.now));
  TestBorrower& first = waiting();
  busy.release();
  world.deliver_all();
  rest(seconds(6));
  world.on(0);
  destination().sweep(world.now);
  world.deliver_all();
  EXPECT_EQ(first.state, State::waiting);
  EXPECT_TRUE(world.dials.empty());
  ASSERT_TRUE(snapshot().cooling_down);
  EXPECT_EQ(snapshot().cooling_down->left, seconds(1));
  EXPECT_EQ(snapshot().cooling_down->age, seconds(6));
  EXPECT_EQ(snapshot().cooling_down->status, 429);
  EXPECT_EQ(destination().cooling(world.now), seconds(1));
  wake_when_asked();
  EXPECT_EQ(first.state, State::leased);
}

TEST_F(Cooled, AfterThePauseOneGoesAheadAndItsResponseLetsTheOthersGoInOrder) {
  cool(seconds(5));
  const std::vector<TestBorrower*> all = line_of(6);
  wake_when_asked();
  EXPECT_EQ(leased_among(all), 1);
  EXPECT_TRUE(all[0]->lease.trial());
  EXPECT_EQ(destination().cooling(world.now), Duration::zero());
  EXPECT_TRUE(world.dials.empty()) << "nor is anything dialed for the others";
  TestBorrower& late = waiting();
  pass(*all[0]);
  EXPECT_FALSE(snapshot().cooling_down);
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 4) << "the size of the pool";
  for (int n = 0; n < 4; ++n) EXPECT_EQ(all[static_cast<std::size_t>(n)]->state, State::leased) << n;
  EXPECT_EQ(late.state, State::waiting);
}

TEST_F(Cooled, ATrialThatIsRefusedAgainHoldsTheOthersForTheNextTime) {
  cool(seconds(5));
  const std::vector<TestBorrower*> all = line_of(3);
  wake_when_asked();
  EXPECT_TRUE(destination().cool_down(seconds(9), 503, world.now)) << "a renewed pause";
  all[0]->release();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 0);
  EXPECT_EQ(snapshot().cooling_down->left, seconds(9));
  EXPECT_EQ(snapshot().cooling_down->age, seconds(5)) << "it has lasted since the first";
  EXPECT_EQ(snapshot().cool_downs, 2U);
  wake_at(world.now + seconds(9));
  EXPECT_EQ(leased_among(all), 1);
  EXPECT_TRUE(all[1]->lease.trial());
}

TEST_F(Cooled, ATrialWithoutAResponseIsFollowedByTheNext) {
  cool(seconds(5));
  const std::vector<TestBorrower*> all = line_of(4);
  wake_when_asked();
  all[0]->discard(CloseCause::error);  // its connection failed
  ASSERT_EQ(world.dials.size(), 1U) << "one dial, for one trial";
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 1);
  EXPECT_TRUE(all[1]->lease.trial());
  all[1]->lose();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 1);
  EXPECT_TRUE(all[2]->lease.trial());
}

TEST_F(Cooled, ATrialThatHasNoResponseInTimeIsFollowedByOneMoreWhoseResponseEndsThePause) {
  const std::vector<TestBorrower*> all = two_trials_of(5);
  pass(*all[1]);
  EXPECT_FALSE(snapshot().cooling_down);
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 4) << "the size of the pool";
}

TEST_F(Cooled, TheLateResponseOfATrialEndsThePauseToo) {
  const std::vector<TestBorrower*> all = two_trials_of(3);
  pass(*all[0]);
  EXPECT_FALSE(snapshot().cooling_down);
}

TEST_F(Cooled, ATrialThatIsAloneIsFollowedByTheNextBorrowerWhenItsTimeIsOver) {
  cool(seconds(5));
  TestBorrower& first = waiting();
  wake_when_asked();
  EXPECT_TRUE(first.lease.trial());
  rest(seconds(60));
  TestBorrower& second = waiting();
  if (second.state != State::leased && world.dials.empty()) wake_when_asked();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(second.state, State::leased);
  EXPECT_TRUE(second.lease.trial());
}

TEST_F(Cooled, AResponseOfAPauseBeforeEndsNoneThatHasNoTrialYet) {
  cool(seconds(5));
  TestBorrower& first = waiting();
  wake_when_asked();
  destination().cool_down(seconds(5), 429, world.now);  // by another response
  rest(seconds(6));
  world.on(0);
  destination().sweep(world.now);
  world.on(first.loop());
  EXPECT_FALSE(first.lease.pass_trial(world.now));
  EXPECT_TRUE(snapshot().cooling_down);
}

TEST_F(Cooled, ATrialWhoseBorrowerLeftOnTheWayIsFollowedByTheNext) {
  cool(seconds(5));
  const std::vector<TestBorrower*> all = line_of(3);
  world.now += seconds(5);
  world.on(0);
  destination().wake(world.now);  // the grant is in flight
  all[0]->cancel();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 1);
  EXPECT_TRUE(all[1]->lease.trial());
}

TEST_F(Cooled, ResponsesOfRequestsThatWereOnTheirWayOnlyMoveTheEnd) {
  TestBorrower& one = leased();
  TestBorrower& two = leased();
  EXPECT_TRUE(destination().cool_down(seconds(5), 429, world.now));
  rest(seconds(1));
  EXPECT_FALSE(destination().cool_down(seconds(2), 429, world.now)) << "earlier than known";
  EXPECT_EQ(destination().cooling(world.now), seconds(4));
  EXPECT_FALSE(destination().cool_down(seconds(9), 429, world.now));
  EXPECT_EQ(destination().cooling(world.now), seconds(9));
  EXPECT_EQ(snapshot().cool_downs, 1U);
  EXPECT_FALSE(one.lease.pass_trial(world.now)) << "an answer to a request of before ends nothing";
  one.release();
  two.release();
  waiting();
  EXPECT_TRUE(snapshot().cooling_down);
}

TEST_F(Cooled, AResponseToAnEarlierTrialEndsNothing) {
  cool(seconds(5));
  const std::vector<TestBorrower*> all = line_of(2);
  wake_when_asked();
  destination().cool_down(seconds(5), 429, world.now);  // by another response
  wake_when_asked();
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 2) << "the second trial";
  world.on(all[0]->loop());
  EXPECT_FALSE(all[0]->lease.pass_trial(world.now));
  EXPECT_TRUE(snapshot().cooling_down);
  pass(*all[1]);
  EXPECT_FALSE(snapshot().cooling_down);
}

TEST_F(Cooled, APauseIsNeverLongerThanTheLimitAndNoneIsMadeWithoutOne) {
  limits.max_cool_down = seconds(3);
  EXPECT_TRUE(destination().cool_down(std::chrono::hours(9999), 429, world.now));
  EXPECT_EQ(destination().cooling(world.now), seconds(3));
  limits.max_cool_down = Duration::zero();
  world.on(0);
  destination().set_limits(limits, world.now);
  EXPECT_FALSE(destination().cooling(world.now)) << "a reload that turns it off ends it";
  EXPECT_FALSE(destination().cool_down(seconds(5), 429, world.now));
  EXPECT_FALSE(destination().cooling(world.now));
}

TEST_F(Cooled, AnOperatorEndsItWithResumeAndAPauseOutlastsIt) {
  cool(seconds(5));
  TestBorrower& one = waiting();
  world.on(0);
  destination().pause(world.now);
  rest(seconds(6));
  world.on(0);
  destination().wake(world.now);
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  world.on(0);
  destination().resume(world.now);
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_FALSE(one.lease.trial());
}

TEST_F(Cooled, AFullQueueSaysWhy) {
  limits.max_waiting = 1;
  limits.size = 1;
  cool(seconds(5));
  waiting();
  TestBorrower& refused = borrower_on();
  EXPECT_EQ(refused.borrow(destination()), State::refused);
  EXPECT_EQ(refused.fault->detail, kCoolingDown);
}

// No connection is open, so the first one after the pause might be of either protocol, and of any number of streams.
TEST_F(Cooled, ALineIsNoLongerThanMaxWaitingWhereNothingIsOpen) {
  limits.max_waiting = 2;
  world.close_by_peer(idle_connection());
  while (world.event_one(0)) continue;
  rest(seconds(2));  // the last dial's success is forgotten
  destination().cool_down(seconds(5), 429, world.now);
  line_of(2);
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused);
  wake_when_asked();
  ASSERT_EQ(world.dials.size(), 1U) << "for the trial";
  waiting();
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused) << "a trial serves one";
  BorrowRequest retry;
  retry.new_connection_only = true;
  waiting(retry);
}

TEST_F(Cooled, TheStreamsOfASessionAreHeldAsConnectionsAre) {
  world.next_streams = 10;
  limits.expected_streams = 10;
  TestBorrower& one = leased();
  one.release();
  destination().cool_down(seconds(5), 429, world.now);
  const std::vector<TestBorrower*> all = line_of(5);
  wake_when_asked();
  EXPECT_EQ(leased_among(all), 1);
  all[0]->release();  // without a response
  world.deliver_all();
  EXPECT_EQ(leased_among(all), 1);
  pass(*all[1]);
  EXPECT_EQ(leased_among(all), 4);
}

TEST_F(Cooled, ARetryThatNeedsANewConnectionMayBeTheTrial) {
  cool(seconds(5));
  BorrowRequest again;
  again.new_connection_only = true;
  TestBorrower& retry = waiting(again);
  TestBorrower& other = waiting();
  wake_when_asked();
  EXPECT_EQ(other.state, State::leased) << "what rests suits it";
  other.release();  // without a response
  world.deliver_all();
  ASSERT_EQ(world.dials.size(), 1U) << "for the retry";
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(retry.state, State::leased);
  EXPECT_TRUE(retry.lease.trial());
}

TEST_F(Cooled, ADialThatFailsDuringThePauseRefusesNobody) {
  TestBorrower& one = waiting();
  destination().cool_down(seconds(5), 503, world.now);
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  wake_when_asked();
  if (world.dials.empty()) wake_when_asked();  // the pause after a failure
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(Cooled, NothingIsDialedAheadDuringThePause) {
  limits.min_idle = 2;
  cool(seconds(5));
  rest(seconds(4));
  world.on(0);
  destination().sweep(world.now);
  EXPECT_TRUE(world.dials.empty());
  rest(seconds(2));
  for (int n = 0; n < 2; ++n) destination().sweep(world.now);
  EXPECT_EQ(world.dials.size(), 1U) << "min_idle is kept again";
}

TEST_F(Cooled, NoSessionIsDialedAheadForATrial) {
  limits.expected_streams = 0;
  world.next_streams = 4;
  cool(seconds(5));
  rest(seconds(6));
  TestBorrower& trial = borrower_on(1);
  ASSERT_EQ(trial.borrow(destination()), State::leased);
  EXPECT_TRUE(trial.lease.trial());
  EXPECT_TRUE(world.dials.empty());
  pass(trial);
}

// The pool that a reload puts in the place of another one.
class ASuccessor : public Cooled {
 protected:
  Destination& predecessor() {
    if (!predecessor_)
      predecessor_ = std::make_unique<Destination>(test::origin_named("origin"), limits, world, kLoops);
    return *predecessor_;
  }
  void take_over() {
    world.on(0);
    destination().take_over_pauses(predecessor());
    destination().set_limits(limits, world.now);
  }

 private:
  std::unique_ptr<Destination> predecessor_;
};

TEST_F(ASuccessor, WaitsForTheEndOfThePauseAndThenSendsOneRequest) {
  predecessor().cool_down(seconds(7), 429, world.now);
  rest(seconds(2));
  take_over();
  EXPECT_EQ(destination().cooling(world.now), seconds(5));
  EXPECT_EQ(snapshot().cooling_down->status, 429);
  EXPECT_EQ(snapshot().cool_downs, 0U) << "its predecessor counted it";
  std::vector<TestBorrower*> all = line_of(2);
  EXPECT_TRUE(world.dials.empty());
  wake_at(world.now + seconds(5));
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_TRUE(all[0]->lease.trial());
  pass(*all[0]);
  EXPECT_FALSE(destination().cooling(world.now));
  EXPECT_EQ(audited(), "");
}

TEST_F(ASuccessor, BeginsItsOwnTrialIfThatOfThePredecessorHasNoResponse) {
  TestBorrower& trial = borrower_on();
  predecessor().cool_down(seconds(1), 429, world.now);
  rest(seconds(2));
  EXPECT_EQ(trial.borrow(predecessor()), State::waiting);
  world.dialed();
  world.deliver_all();
  ASSERT_TRUE(trial.lease.trial());
  take_over();
  TestBorrower& next = waiting();
  ASSERT_EQ(world.dials.size(), 1U);
  trial.release();
  world.on(0);
  predecessor().stop(world.now);
  world.dialed();
  world.deliver_all();
  EXPECT_TRUE(next.lease.trial());
}

TEST_F(ASuccessor, ThatIsUsedAgainDropsAPauseThatHasEndedMeanwhile) {
  cool(seconds(50));
  take_over();
  EXPECT_FALSE(destination().cooling(world.now));
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
  EXPECT_EQ(audited(), "");
}

TEST_F(Cooled, AnUnusedPoolIsReclaimedAfterItsPauseAndNotBefore) {
  cool(seconds(50));
  rest(seconds(40));
  EXPECT_FALSE(destination().reclaim(world.now, seconds(30)));
  rest(seconds(11));
  EXPECT_TRUE(destination().reclaim(world.now, seconds(30)));
}

}  // namespace
}  // namespace carpool::pool
