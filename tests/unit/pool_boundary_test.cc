// Unit tests of a destination at its boundaries: limits that are just reached, entries and messages in flight, and the
// decisions that these change.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "pool/core/pool.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class AtABoundary : public test::PoolScene {
 protected:
  AtABoundary() : PoolScene(4) {}

  // An idle session of `streams` streams.
  FakeConnection& session(std::uint32_t streams) {
    limits.expected_streams = streams;
    world.next_streams = streams;
    FakeConnection& wire = idle_connection();
    EXPECT_TRUE(wire.session());
    return wire;
  }
};

// ---- times ----

TEST_F(AtABoundary, LendsWhatWasIdleExactlyAsLongAsItsBorrowerAccepts) {
  idle_connection();
  rest(milliseconds(10));
  EXPECT_EQ(borrower_on().borrow(destination(), {.max_idle = milliseconds(10)}), State::leased);
}

TEST_F(AtABoundary, LendsWhatWasIdleExactlyItsQuarantine) {
  limits.quarantine = milliseconds(10);
  idle_connection();
  rest(milliseconds(10));
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

// ---- waiters ----

TEST_F(AtABoundary, GivesAnIdleSessionToTheNextAndThenToTheOneThatRefusedItForItsIdleTime) {
  session(4);
  destination().pause(world.now);
  rest(milliseconds(50));
  TestBorrower& strict = waiting({.max_idle = milliseconds(1)});
  TestBorrower& patient = waiting();
  destination().resume(world.now);
  world.deliver_all();
  EXPECT_EQ(patient.state, State::leased);
  EXPECT_EQ(strict.state, State::leased) << "it is in use now, not idle";
}

TEST_F(AtABoundary, RefusesOneWhoComesBackAfterTheStop) {
  limits.expire_time = seconds(10);
  limits.size = 1;
  TestBorrower& first = leased();
  TestBorrower& next = waiting({}, 1);
  first.release();  // the grant is in flight
  destination().stop(world.now);
  rest(seconds(20));
  world.deliver_all();
  EXPECT_EQ(next.state, State::refused) << "what was given expired on its way";
}

TEST_F(AtABoundary, RefusesNobodyAfterAFailedDialWhilePaused) {
  TestBorrower& one = waiting();
  destination().pause(world.now);
  world.dial_failed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::waiting);
  destination().resume(world.now);
}

TEST_F(AtABoundary, DoesNotEndWhileTheNoOfATunnelIsOnItsWay) {
  limits.max_tunnels = 1;
  TestBorrower& one = waiting({.tunnel = true});
  world.dial_failed();
  rest(seconds(60));
  EXPECT_FALSE(destination().reclaim(world.now, seconds(1)));
  world.deliver_all();
  EXPECT_EQ(one.state, State::refused);
  EXPECT_TRUE(destination().reclaim(world.now, seconds(1)));
}

// The destination's memory stays until each loop has reported in two turns that it does not use it.
TEST_F(AtABoundary, EndsBeforeTheLoopOfAnIdleSessionHasDisposedOfIt) {
  session(2);
  rest(seconds(60));
  EXPECT_TRUE(destination().reclaim(world.now, seconds(1)));
  EXPECT_TRUE(destination().reclaimed());
  EXPECT_EQ(world.live.size(), 1U);
  world.deliver_all();
  EXPECT_TRUE(world.live.empty());
}

// ---- dials ----

TEST_F(AtABoundary, DialsNotForOneWhoWillGetThePlaceOfASessionThatEnds) {
  FakeConnection& wire = session(2);
  world.retire(destination(), wire, CloseCause::goaway);
  TestBorrower& one = waiting();
  EXPECT_TRUE(world.dials.empty()) << "its place is being freed";
  world.deliver_all();
  EXPECT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(AtABoundary, KeepsMinIdleBesideTheDialsOfWaiters) {
  limits.min_idle = 1;
  waiting();
  EXPECT_EQ(world.dials.size(), 1U);
  destination().sweep(world.now);
  EXPECT_EQ(world.dials.size(), 2U);
}

TEST_F(AtABoundary, DialsASecondSessionBeforeTheFirstIsFull) {
  session(8);
  for (int n = 0; n < 6; ++n) leased();
  EXPECT_TRUE(world.dials.empty());
  leased();
  EXPECT_EQ(world.dials.size(), 1U) << "seven of eight streams are lent";
}

// ---- what is learned ----

TEST_F(AtABoundary, LearnsNoIdleLimitFromWhatItClosedItself) {
  for (int n = 0; n < 4; ++n) {
    FakeConnection& wire = idle_connection();
    const EventClaim claim = claim_event(wire.index, wire.generation, 0);
    ASSERT_EQ(claim.kind, EventClaim::Kind::inspecting);
    rest(seconds(2));
    close_inspected(wire.index, CloseCause::unhealthy, world.now, OriginClose::in_order);
    rest(seconds(2));
    destination().sweep(world.now);
  }
  EXPECT_EQ(destination().effective_limit(), Duration::max());
}

TEST(AKeepAliveOfDifferentTimes, IsNotLearned) {
  IdleLimitLearner learner;
  Instant now{std::chrono::hours(1)};
  for (const Duration rested : {milliseconds(10000), milliseconds(13000), milliseconds(14500)}) {
    learner.closed_by_origin(rested, false, now);
    learner.evaluate(now += seconds(60));
  }
  EXPECT_EQ(learner.limit(), std::nullopt) << "they differ by more than a fifth";
}

// ---- the words of entries ----

TEST(AnEntryAtItsBoundary, IsNotInspectedWhileItIsLent) {
  AtomicWord word{EntryWord::vacant(1).bits()};
  ASSERT_TRUE(try_reserve(word));
  ASSERT_TRUE(try_enable(word, 0, true));
  EXPECT_FALSE(try_inspect(word, 1, 0));
}

TEST(AnEntryAtItsBoundary, StaysClosedIfItWasTerminatedUnderAQuietInspection) {
  AtomicWord word{EntryWord::vacant(1).bits()};
  ASSERT_TRUE(try_reserve(word));
  ASSERT_TRUE(try_enable(word, 0, false));
  ASSERT_TRUE(try_inspect(word, 1, 0));
  ASSERT_TRUE(try_terminate(word));
  const Change change = end_inspect(word, InspectionEnd::idle);
  EXPECT_TRUE(change.after.vacant());
  EXPECT_NE(change.after.generation(), change.before.generation()) << "an event in flight still names it";
}

TEST(AnEntryAtItsBoundary, IsLentToOthersIfItWasOpenedInUse) {
  Pool<int> pool(2, 1, 3);
  Entry<int>* opened = pool.reserve();
  ASSERT_NE(opened, nullptr);
  ASSERT_TRUE(pool.enable(*opened, 0, true));
  EXPECT_EQ(pool.acquire(0, false, [](const auto&, EntryWord) { return Match::take; }).entry, opened);
}

// ---- the stack ----

// An environment in which no connection can be moved to another loop. Counts the stack frames that try.
struct NothingMoves final : test::FakeEnvironment {
  NothingMoves() : FakeEnvironment(2) {}
  bool attach(PooledConnection&, std::uint32_t, std::uint32_t) override {
    ++tried;
    frames.insert(__builtin_frame_address(0));
    return false;
  }
  std::set<void*> frames;
  int tried = 0;
};

TEST(ABorrowerThatNoConnectionCanBeMovedTo, TriesAllOfThemOnOneStackFrame) {
  constexpr int kConnections = 20;
  NothingMoves world;
  Limits limits;
  limits.size = kConnections;
  Destination destination(test::origin_named("origin"), limits, world, 2);
  std::deque<TestBorrower> holders;
  for (int n = 0; n < kConnections; ++n) {
    holders.emplace_back(world, LoopId{1}).borrow(destination);
    world.dialed();
    world.deliver_all();
  }
  for (TestBorrower& one : holders) one.release();
  TestBorrower tunnel(world, LoopId{0});
  EXPECT_EQ(tunnel.borrow(destination, {.tunnel = true}), State::waiting);
  EXPECT_EQ(world.tried, kConnections);
  EXPECT_EQ(world.frames.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(tunnel.state, State::leased);
  tunnel.discard(CloseCause::tunnel_ended);
  destination.stop(world.now);
  EXPECT_EQ(world.wrong, "");
}

}  // namespace
}  // namespace carpool::pool
