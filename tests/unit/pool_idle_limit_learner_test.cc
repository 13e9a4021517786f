// Unit tests of IdleLimitLearner: which closes count as samples of an origin's idle limit, when the limit is trusted,
// which observations refute it; and its effect on a destination.
#include "pool/policy/idle_limit_learner.h"

#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeConnection;
using test::TestBorrower;

class AKeepAlive : public testing::Test {
 protected:
  // Closes that are far apart.
  void ends(std::initializer_list<Duration> rests, bool left = false) {
    for (const Duration rested : rests) {
      now += seconds(1);
      learned.closed_by_origin(rested, left, now);
    }
    now += seconds(1);
    learned.evaluate(now);
  }
  IdleLimitLearner learned;
  Instant now = Instant(std::chrono::hours(1));
};

TEST_F(AKeepAlive, IsUnknownUntilThreeEndsAgree) {
  EXPECT_FALSE(learned.limit());
  EXPECT_EQ(learned.effective_limit(), Duration::max());
  ends({seconds(5), seconds(5)});
  EXPECT_FALSE(learned.limit());
  ends({milliseconds(5900)});
  EXPECT_EQ(learned.limit(), seconds(5)) << "the shortest of those that agree within 20 %";
  EXPECT_EQ(learned.effective_limit(), milliseconds(4500)) << "ten per cent before it";
}

TEST_F(AKeepAlive, IsNotLearnedFromEndsThatDoNotAgree) {
  ends({seconds(2), seconds(4), seconds(8), seconds(16), seconds(32)});
  EXPECT_FALSE(learned.limit());
}

TEST_F(AKeepAlive, KeepsAHundredMillisecondsAtLeastAndRetiresNothingThatWasIdleLessThanASecond) {
  ends({milliseconds(300), milliseconds(300), milliseconds(300)});
  EXPECT_EQ(learned.limit(), milliseconds(300)) << "any age is learned";
  EXPECT_EQ(learned.effective_limit(), milliseconds(900));
  EXPECT_EQ(learned.trust(), milliseconds(200));
}

// ---- trust ----

TEST_F(AKeepAlive, TrustsEveryIdleTimeUntilTheOriginEndsOne) {
  EXPECT_EQ(learned.trust(), Duration::max());
}

TEST_F(AKeepAlive, TrustsNoIdleTimeNearTheShortestThatTheOriginEndedAtOnce) {
  learned.closed_by_origin(seconds(3), false, now);
  EXPECT_EQ(learned.trust(), milliseconds(2700)) << "one is enough, and nothing is waited for";
  EXPECT_EQ(learned.effective_limit(), Duration::max()) << "but not to retire connections";
  learned.reset_by_origin(milliseconds(800), now += seconds(1));
  EXPECT_EQ(learned.trust(), milliseconds(700)) << "whatever way it ended";
  ends({milliseconds(30)});
  EXPECT_EQ(learned.trust(), Duration::zero()) << "nothing that rested at all";
}

TEST_F(AKeepAlive, LendsNothingThatServedWhereTheOriginKeepsNothingAlive) {
  for (const Duration rested : {milliseconds(0), milliseconds(5), milliseconds(50), milliseconds(100)}) {
    learned = {};
    ends({rested, rested + milliseconds(9), rested});
    EXPECT_EQ(learned.trust(), BorrowRequest::kOnlyNew) << rested.count();
    EXPECT_EQ(learned.limit(), rested);
  }
  learned = {};
  learned.hint(seconds(0));
  EXPECT_EQ(learned.trust(), BorrowRequest::kOnlyNew) << "or says so";
}

TEST_F(AKeepAlive, DoubtsNoIdleTimeBecauseOfARestart) {
  for (int i = 1; i <= 8; ++i) learned.closed_by_origin(seconds(i), false, now += milliseconds(5));
  EXPECT_EQ(learned.trust(), milliseconds(900)) << "it could be more than that";
  learned.evaluate(now + seconds(1));
  EXPECT_EQ(learned.trust(), Duration::max());
}

TEST_F(AKeepAlive, TrustsAgainWhenSixteenLivedLonger) {
  ends({milliseconds(10)});
  for (int i = 0; i < 15; ++i) learned.survived(milliseconds(40));
  EXPECT_EQ(learned.trust(), Duration::zero());
  ends({milliseconds(12)});
  for (int i = 0; i < 15; ++i) learned.survived(milliseconds(40));
  EXPECT_EQ(learned.trust(), Duration::zero()) << "sixteen in a row";
  learned.survived(milliseconds(25));
  EXPECT_EQ(learned.trust(), Duration::zero()) << "a rest that is no longer than the one it ended is no news";
  learned.survived(milliseconds(40));
  EXPECT_EQ(learned.trust(), Duration::max());
}

TEST_F(AKeepAlive, IsRefutedOnlyBelowWhatLivedLonger) {
  ends({milliseconds(10), seconds(5), seconds(5), seconds(5)});
  for (int i = 0; i < 16; ++i) learned.survived(seconds(2));
  EXPECT_EQ(learned.trust(), milliseconds(4500));
  EXPECT_EQ(learned.limit(), seconds(5));
}

TEST_F(AKeepAlive, IsRefutedByTheShortestOfThoseThatLivedLongerNotByTheLast) {
  learned.closed_by_origin(seconds(2), false, now += seconds(1));
  learned.closed_by_origin(seconds(10), false, now += seconds(1));
  learned.evaluate(now += seconds(1));
  learned.survived(seconds(5));
  for (int i = 0; i < 15; ++i) learned.survived(seconds(20));
  EXPECT_EQ(learned.trust(), seconds(9)) << "of the two ends, the longer one stands";
}

TEST_F(AKeepAlive, TakesManyEndsAtOnceForARestart) {
  for (int i = 1; i <= 8; ++i) learned.closed_by_origin(seconds(i), false, now += milliseconds(5));
  learned.evaluate(now + seconds(1));
  EXPECT_EQ(learned.samples(), 0U);
}

TEST_F(AKeepAlive, TakesEndsAtOnceForSamplesWhenTheyWereIdleAlike) {
  for (int i = 0; i < 4; ++i) learned.closed_by_origin(seconds(5) + milliseconds(i), false, now += milliseconds(5));
  EXPECT_FALSE(learned.limit()) << "it could still be a restart";
  learned.evaluate(now + seconds(1));
  EXPECT_EQ(learned.limit(), seconds(5));
}

TEST_F(AKeepAlive, IsTheTenthPercentileOfTheLastThirtyTwo) {
  for (int i = 0; i < 40; ++i) ends({seconds(10) + milliseconds(10 * i)});
  EXPECT_EQ(learned.samples(), 32U);
  EXPECT_EQ(learned.limit(), seconds(10) + milliseconds(110)) << "the fourth of those that are left";
}

TEST_F(AKeepAlive, IsNotPulledDownByOneAccident) {
  ends({seconds(1), seconds(10), seconds(10), seconds(10)});
  EXPECT_EQ(learned.limit(), seconds(10));
}

TEST_F(AKeepAlive, NeverExceedsWhatTheOriginSays) {
  learned.hint(seconds(5));
  EXPECT_EQ(learned.limit(), seconds(5)) << "before anything was learned";
  ends({seconds(60), seconds(60), seconds(60)});
  EXPECT_EQ(learned.limit(), seconds(5));
  learned.hint(std::nullopt);
  EXPECT_EQ(learned.limit(), seconds(5)) << "a response without the hint takes nothing back";
  learned.hint(seconds(20));
  EXPECT_EQ(learned.limit(), seconds(20));
}

TEST_F(AKeepAlive, IsNotReplacedByWhatAnEarlierProcessLearned) {
  learned.hint(seconds(5));
  learned.restore(seconds(3));
  EXPECT_EQ(learned.limit(), seconds(5));
}

TEST_F(AKeepAlive, LeavesEverySixteenthToTheOrigin) {
  int left = 0;
  for (int i = 0; i < 160; ++i) left += learned.retire() ? 0 : 1;
  EXPECT_EQ(left, 10);
}

TEST_F(AKeepAlive, IsRaisedByOneThatWasLeftAndLivedLonger) {
  ends({seconds(5), seconds(5), seconds(5)});
  ends({seconds(5)}, true);
  EXPECT_EQ(learned.limit(), seconds(5));
  ends({seconds(60)}, true);
  EXPECT_EQ(learned.limit(), seconds(60)) << "what was learned before is refuted";
  ends({seconds(20)});
  EXPECT_EQ(learned.limit(), seconds(20)) << "and so is what was raised too far";
  ends({seconds(20), seconds(20)});
  EXPECT_EQ(learned.limit(), seconds(20));
}

TEST_F(AKeepAlive, IsRaisedByOneThatOutlivedOurOwnLimit) {
  ends({seconds(5), seconds(5), seconds(5)});
  learned.hint(seconds(5));
  learned.outlived(seconds(60));
  EXPECT_EQ(learned.limit(), seconds(60)) << "the hint was wrong, too";
}

// ---- in a destination ----

class ALearningDestination : public test::PoolScene {
 protected:
  ALearningDestination() : PoolScene(4) { limits.idle_timeout = seconds(60); }
  void origin_ends(FakeConnection& wire) {
    world.close_by_peer(wire);
    while (world.event_one(0)) continue;
  }
  // The origin closes connections idle for five seconds, which is observed.
  void learn() {
    for (int i = 0; i < 3; ++i) {
      FakeConnection& wire = idle_connection();
      rest(seconds(5));
      origin_ends(wire);
    }
    rest(seconds(1));
    sweep();
    ASSERT_EQ(snapshot().learned_idle, seconds(5));
    world.closed.clear();
  }
  void sweep() {
    world.on(0);
    destination().sweep(world.now);
  }
};

TEST_F(ALearningDestination, RetiresWhatWasIdleAlmostAsLongAsTheOriginAllows) {
  learn();
  idle_connection();
  rest(milliseconds(4400));
  sweep();
  EXPECT_TRUE(world.closed.empty());
  rest(milliseconds(200));
  sweep();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
  EXPECT_EQ(destination().effective_limit(), milliseconds(4500));
}

TEST_F(ALearningDestination, ForgetsWhatItLearnedWhenLearningIsSwitchedOff) {
  learn();
  limits.learn_idle = false;
  destination().set_limits(limits, world.now);
  EXPECT_FALSE(snapshot().learned_idle);
  EXPECT_EQ(destination().effective_limit(), Duration::max());
  EXPECT_EQ(destination().trust(), Duration::max());
  idle_connection();
  rest(milliseconds(4600));
  EXPECT_EQ(borrower_on().borrow(destination()), TestBorrower::State::leased);
  EXPECT_TRUE(world.closed.empty());
  limits.learn_idle = true;
  destination().set_limits(limits, world.now);
  EXPECT_FALSE(snapshot().learned_idle) << "it begins anew";
}

TEST_F(ALearningDestination, DoesNotLendWhatIsOverdueBetweenTwoSweeps) {
  learn();
  idle_connection();
  rest(milliseconds(4600));
  EXPECT_EQ(borrower_on().borrow(destination()), TestBorrower::State::waiting);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
  EXPECT_EQ(world.opened.back(), OpenCause::stale_found);
}

TEST_F(ALearningDestination, LeavesOneOfSixteenToTheOriginAndLearnsThatItLivesLonger) {
  learn();
  for (int i = 0; i < 15; ++i) {
    idle_connection();
    rest(milliseconds(4600));
    sweep();
  }
  ASSERT_EQ(world.closed.size(), 15U);
  FakeConnection& left = idle_connection();
  rest(milliseconds(4600));
  sweep();
  EXPECT_EQ(world.closed.size(), 15U) << "the sixteenth stays";
  rest(seconds(15));
  sweep();
  origin_ends(left);
  rest(seconds(1));
  sweep();
  EXPECT_EQ(snapshot().learned_idle, seconds(15) + milliseconds(4600));
}

TEST_F(ALearningDestination, LearnsFromOneLeftToTheOriginThatLivesUpToIdleTimeout) {
  limits.idle_timeout = seconds(20);
  learn();
  for (int i = 0; i < 16; ++i) {
    idle_connection();
    rest(milliseconds(4600));
    sweep();
  }
  ASSERT_EQ(world.closed.size(), 15U);
  rest(seconds(16));
  sweep();
  EXPECT_EQ(world.closed.size(), 16U) << "idle_timeout";
  EXPECT_EQ(snapshot().learned_idle, seconds(16) + milliseconds(4600));
}

TEST_F(ALearningDestination, TakesNoRestoredLimitWhenItIsToldNotToLearn) {
  limits.learn_idle = false;
  destination().restore_idle_limit(seconds(5));
  EXPECT_FALSE(snapshot().learned_idle);
}

TEST_F(ALearningDestination, LearnsNothingFromConnectionsThatNeverServedOrWhenItIsOff) {
  for (int i = 0; i < 4; ++i) {
    TestBorrower& one = waiting();
    one.cancel();
    world.dialed();
    world.deliver_all();
    rest(seconds(5));
    origin_ends(**world.live.begin());
  }
  rest(seconds(1));
  sweep();
  EXPECT_FALSE(snapshot().learned_idle);
}

TEST_F(ALearningDestination, LearnsNothingWhenItIsToldNotTo) {
  limits.learn_idle = false;
  for (int i = 0; i < 4; ++i) {
    FakeConnection& wire = idle_connection();
    rest(seconds(5));
    origin_ends(wire);
  }
  rest(seconds(1));
  sweep();
  destination().hint_keep_alive(seconds(5));
  EXPECT_FALSE(snapshot().learned_idle);
  EXPECT_EQ(destination().effective_limit(), Duration::max());
}

// ---- requests that must not be retried ----

class AnOriginThatClosesEarly : public ALearningDestination {
 protected:
  static BorrowRequest careful(const Destination& destination) {
    BorrowRequest want;
    want.max_idle = destination.trust();
    return want;
  }
  void closes_after(Duration rest_before) {
    FakeConnection& wire = idle_connection();
    rest(rest_before);
    origin_ends(wire);
  }
};

TEST_F(AnOriginThatClosesEarly, LeavesNothingForThemThatServed) {
  for (int i = 0; i < 3; ++i) {
    closes_after(milliseconds(i));
    rest(seconds(1));
  }
  sweep();
  EXPECT_EQ(destination().trust(), BorrowRequest::kOnlyNew);
  EXPECT_EQ(snapshot().learned_idle, milliseconds(0));
  idle_connection();
  TestBorrower& post = waiting(careful(destination()));
  world.dialed();
  world.deliver_all();
  EXPECT_FALSE(post.lease.reused());
}

TEST_F(AnOriginThatClosesEarly, IsLearnedFromAnEndUnderARequest) {
  idle_connection();
  rest(milliseconds(400));
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  rest(seconds(9));  // the duration of the request does not count
  world.on(0);
  one.wire().peer_closed = true;
  one.lease.note_no_response(world.now);
  one.discard(CloseCause::peer_closed);
  EXPECT_EQ(destination().trust(), milliseconds(300));
}

TEST_F(AnOriginThatClosesEarly, TeachesNothingToABorrowerThatKeptTheConnection) {
  idle_connection();
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  const std::uint32_t before = one.lease.uses_before();
  const Duration trust = destination().trust();
  rest(seconds(9));
  one.lease.use_again();
  EXPECT_EQ(one.lease.uses_before(), before + 1);
  world.on(0);
  one.wire().peer_closed = true;
  one.lease.note_no_response(world.now);
  one.discard(CloseCause::peer_closed);
  EXPECT_EQ(destination().trust(), trust) << "it was idle for nine seconds, not for none";
}

TEST_F(AnOriginThatClosesEarly, IsLearnedFromAnEndThatCameWithTheResponse) {
  for (int i = 0; i < 3; ++i) {
    TestBorrower& one = leased();
    one.wire().peer_closed = true;
    one.release();
    rest(seconds(1));
  }
  sweep();
  EXPECT_EQ(destination().trust(), BorrowRequest::kOnlyNew);
}

TEST_F(AnOriginThatClosesEarly, IsNotOneThatBreaksOffWhatItHadKeptAlive) {
  FakeConnection* wire = nullptr;
  for (int i = 0; i < 4; ++i) wire = &idle_connection();
  rest(milliseconds(1));
  origin_ends(*wire);
  EXPECT_EQ(destination().trust(), Duration::max());
}

TEST_F(AnOriginThatClosesEarly, IsTrustedAgainBySixteenThatAreIdleLonger) {
  closes_after(milliseconds(30));
  ASSERT_EQ(destination().trust(), Duration::zero());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(destination().trust(), Duration::zero()) << i;
    idle_connection();
    for (int looks = 0; looks < 3; ++looks) {
      rest(milliseconds(500));
      sweep();
    }
  }
  EXPECT_EQ(destination().trust(), Duration::max());
}

TEST_F(AnOriginThatClosesEarly, GivesThemANewConnectionAtTheCapToo) {
  limits.size = 1;
  BorrowRequest only_new;
  only_new.max_idle = BorrowRequest::kOnlyNew;
  TestBorrower& holder = leased();
  TestBorrower& post = waiting(only_new);
  EXPECT_TRUE(world.dials.empty());
  holder.release();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::surplus});
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::policy);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(post.state, State::leased);
  EXPECT_FALSE(post.lease.reused());
}

TEST_F(AnOriginThatClosesEarly, LeavesWhatServedToWhoComesNextInTheQueue) {
  BorrowRequest only_new;
  only_new.max_idle = BorrowRequest::kOnlyNew;
  TestBorrower& holder = leased();
  TestBorrower& post = waiting(only_new);
  TestBorrower& get = waiting();
  ASSERT_EQ(world.dials.size(), 2U);
  holder.release();
  world.deliver_all();
  EXPECT_EQ(post.state, State::waiting);
  EXPECT_EQ(get.state, State::leased);
  EXPECT_TRUE(get.lease.reused());
}

TEST_F(AnOriginThatClosesEarly, DoesNotKeepThemFromASessionInUseOrFromWhatNeverServed) {
  limits.expected_streams = 2;
  world.next_streams = 2;
  BorrowRequest only_new;
  only_new.max_idle = BorrowRequest::kOnlyNew;
  TestBorrower& post = waiting(only_new);
  TestBorrower& next = waiting(only_new);
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(post.state, State::leased);
  EXPECT_EQ(next.state, State::leased);
  post.release();
  EXPECT_EQ(borrower_on().borrow(destination(), only_new), State::leased);
}

TEST_F(AnOriginThatClosesEarly, GivesThemAnIdleSessionWhichProvesItself) {
  limits.size = 1;
  limits.expected_streams = 2;
  world.next_streams = 2;
  TestBorrower& get = waiting();
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(get.state, State::leased);
  get.release();
  rest(milliseconds(500));  // below the least limit that is learned
  TestBorrower& post = borrower_on();
  EXPECT_EQ(post.borrow(destination(), {.max_idle = BorrowRequest::kOnlyNew}), State::leased);
  EXPECT_TRUE(post.lease.reused());
  EXPECT_TRUE(world.closed.empty());
}

TEST_F(ALearningDestination, CountsTheIdleTimeFromTheLastCheckThatTheOriginAnswered) {
  learn();
  FakeConnection& wire = idle_connection();
  rest(seconds(3));
  world.on(0);
  destination().lease_idle(wire.index, wire.generation, world.now).return_unused(world.now);
  rest(seconds(3));
  sweep();
  EXPECT_TRUE(world.closed.empty()) << "the origin's clock began anew";
}

}  // namespace
}  // namespace carpool::pool
