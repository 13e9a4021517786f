// Unit tests of Directory: one destination per origin, and one total of connections.
#include "pool/directory/directory.h"

#include <gtest/gtest.h>

#include "pool/core/entry_index.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::seconds;
using test::FakeEnvironment;
using test::origin_named;
using test::TestBorrower;
using State = TestBorrower::State;

class ADirectory : public testing::Test {
 protected:
  ADirectory() : world(2) {}
  ~ADirectory() override { EXPECT_EQ(world.wrong, ""); }
  Directory& directory() {
    if (!made_) made_ = std::make_unique<Directory>(limits, world, 2);
    return *made_;
  }
  Destination& at(const std::string& host, std::uint32_t size = 4) {
    Limits own;
    own.size = size;
    Result<Destination*> found = directory().at(origin_named(host), own);
    EXPECT_TRUE(found);
    return **found;
  }
  TestBorrower& borrower_on() { return borrowers_.emplace_back(world, LoopId{0}); }
  TestBorrower& leased(Destination& destination) {
    TestBorrower& one = borrower_on();
    if (one.borrow(destination) == State::waiting) run_until_idle();
    EXPECT_EQ(one.state, State::leased);
    return one;
  }
  void run_until_idle() {
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
  }
  void TearDown() override {
    for (int rounds = 0; rounds < 20; ++rounds) {
      run_until_idle();
      for (TestBorrower& one : borrowers_) {
        if (one.state == State::leased) one.release();
      }
      EXPECT_EQ(directory().connections(), world.live.size() + world.dials.size());
    }
    for (TestBorrower& one : borrowers_) EXPECT_NE(one.state, State::waiting) << "forgotten";
  }
  FakeEnvironment world;
  DirectoryLimits limits;

 private:
  std::deque<TestBorrower> borrowers_;
  std::unique_ptr<Directory> made_;
};

TEST_F(ADirectory, MakesOneDestinationForEqualOrigins) {
  EXPECT_EQ(&at("a"), &at("a"));
  EXPECT_NE(&at("a"), &at("b"));
  EXPECT_EQ(directory().find(origin_named("a")), &at("a"));
  EXPECT_EQ(directory().find(origin_named("c")), nullptr);
  EXPECT_EQ(directory().size(), 2U);
}

TEST_F(ADirectory, KeepsDifferingTlsIdentitiesApart) {
  Origin other = origin_named("a");
  other.tls = 1;
  EXPECT_NE(*directory().at(other, {}), &at("a"));
}

TEST_F(ADirectory, KnowsSinceWhenEachDestinationCounts) {
  const Destination& one = **directory().at(origin_named("a"), {}, world.now);
  EXPECT_EQ(one.snapshot(world.now).age, Duration::zero());
  EXPECT_EQ(one.snapshot(world.now + seconds(90)).age, Duration(seconds(90)));
}

TEST_F(ADirectory, RefusesMoreOriginsThanItMayHold) {
  limits.max_origins = 1;
  at("a");
  Result<Destination*> second = directory().at(origin_named("b"), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.fault().kind, FaultKind::origins_exhausted);
  EXPECT_TRUE(directory().at(origin_named("a"), {}));
}

// Takes every number that connections of this process can have, and releases them.
class NoNumberLeft {
 public:
  NoNumberLeft() {
    while (!index_.full()) {
      taken_.push_back(index_.reserve());
      index_.publish(taken_.back(), block_);
    }
  }
  ~NoNumberLeft() {
    for (const EntryIndex::Place& place : taken_) index_.withdraw(place.first_index);
  }
  NoNumberLeft(const NoNumberLeft&) = delete;
  NoNumberLeft& operator=(const NoNumberLeft&) = delete;

 private:
  EntryIndex& index_ = EntryIndex::process();
  Block<int> block_{1};
  std::vector<EntryIndex::Place> taken_;
};

TEST_F(ADirectory, AnswersWithAFaultWhenEveryNumberOfAConnectionIsTaken) {
  Destination& without_a_connection = at("a");
  {
    const NoNumberLeft none;
    Result<Destination*> another = directory().at(origin_named("b"), {});
    ASSERT_FALSE(another);
    EXPECT_EQ(another.fault().kind, FaultKind::origins_exhausted);
    TestBorrower& one = borrower_on();
    ASSERT_EQ(one.borrow(without_a_connection), State::refused);
    EXPECT_EQ(one.fault->kind, FaultKind::overloaded);
    EXPECT_TRUE(world.dials.empty());
  }
  leased(without_a_connection);
  EXPECT_TRUE(directory().at(origin_named("b"), {}));
}

TEST_F(ADirectory, TakesAnIdleConnectionOfTheLeastRecentlyUsedDestinationWhenTheTotalIsReached) {
  limits.max_connections = 2;
  leased(at("old")).release();
  world.now += seconds(1);
  leased(at("recent")).release();
  leased(at("new"));
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::budget});
  EXPECT_FALSE(at("old").has_idle());
  EXPECT_TRUE(at("recent").has_idle());
  EXPECT_EQ(world.most, 2U);
}

TEST_F(ADirectory, LetsABorrowerWaitForThePlaceThatAnotherDestinationGivesBack) {
  limits.max_connections = 1;
  TestBorrower& holder = leased(at("a"));
  TestBorrower& one = borrower_on();
  EXPECT_EQ(one.borrow(at("b")), State::waiting);
  EXPECT_TRUE(world.dials.empty());
  holder.discard(CloseCause::error);
  run_until_idle();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(ADirectory, TellsOfADestinationWhetherItWaitsForTheTotal) {
  limits.max_connections = 1;
  TestBorrower& holder = leased(at("a"));
  Destination& starved = at("b");
  EXPECT_FALSE(starved.snapshot(world.now).starved) << "nobody asked it";
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(starved), State::waiting);
  EXPECT_TRUE(starved.snapshot(world.now).starved);
  EXPECT_FALSE(at("a").snapshot(world.now).starved);
  holder.discard(CloseCause::error);
  run_until_idle();
  EXPECT_FALSE(starved.snapshot(world.now).starved) << "it has its connection";
}

TEST_F(ADirectory, EvictsAConnectionThatBecomesIdleWhileAnotherDestinationIsStarved) {
  limits.max_connections = 1;
  TestBorrower& holder = leased(at("a"));
  TestBorrower& one = borrower_on();
  one.borrow(at("b"));
  holder.release();
  run_until_idle();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::budget});
}

TEST_F(ADirectory, LeavesThePlaceToTheNextWhenTheOneThatWantedItIsGone) {
  limits.max_connections = 1;
  TestBorrower& holder = leased(at("a"));
  TestBorrower& gone = borrower_on();
  gone.borrow(at("b"));
  TestBorrower& next = borrower_on();
  next.borrow(at("c"));
  gone.cancel();
  holder.discard(CloseCause::error);
  run_until_idle();
  EXPECT_EQ(next.state, State::leased);
}

TEST_F(ADirectory, RejectsWithTheBudgetWhenNoBorrowerMayWait) {
  limits.max_connections = 1;
  leased(at("a"));
  Limits own;
  own.max_waiting = 0;
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(**directory().at(origin_named("b"), own)), State::refused);
  EXPECT_EQ(one.fault->kind, FaultKind::budget);
}

TEST_F(ADirectory, SweepsAndStopsEveryDestination) {
  leased(at("a")).release();
  leased(at("b")).release();
  directory().stop(world.now);
  EXPECT_EQ(world.closed, (std::vector<CloseCause>{CloseCause::shutdown, CloseCause::shutdown}));
  EXPECT_EQ(directory().connections(), 0U);
}

// ---- removal of unused destinations ----

class AnIdlePool : public ADirectory {
 protected:
  Destination& made(const std::string& host) {
    Result<Destination*> found = directory().at(origin_named(host), {}, world.now);
    EXPECT_TRUE(found);
    return **found;
  }
  std::vector<Destination*> unlink_idle() {
    world.on(0);
    return directory().unlink_idle(world.now, seconds(10), [](const Destination&) { return false; });
  }
};

TEST_F(AnIdlePool, EndsWhenItWasUnusedForTheTimeout) {
  Destination& one = made("a.test");
  leased(one).release();
  world.now += seconds(9);
  EXPECT_TRUE(unlink_idle().empty());
  world.now += seconds(1);
  EXPECT_EQ(unlink_idle(), std::vector<Destination*>{&one});
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle}) << "what rested in it ended first";
  EXPECT_TRUE(one.reclaimed());
  EXPECT_EQ(directory().size(), 0U);
  EXPECT_EQ(directory().find(origin_named("a.test")), nullptr);
  EXPECT_EQ(directory().reclaimed().borrows, 1U);
  EXPECT_EQ(directory().reclaimed().opened_total(), directory().reclaimed().closed_total());
  EXPECT_TRUE(directory().destroy({&one}));
}

TEST_F(AnIdlePool, MakesRoomForAnotherOrigin) {
  limits.max_origins = 1;
  made("a.test");
  EXPECT_FALSE(directory().at(origin_named("b.test"), {}, world.now));
  world.now += seconds(10);
  const std::vector<Destination*> gone = unlink_idle();
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_TRUE(directory().at(origin_named("b.test"), {}, world.now));
  EXPECT_TRUE(directory().destroy(gone));
}

TEST_F(AnIdlePool, IsNotOneThatIsInUseOrWaitedForOrPausedOrKeptReady) {
  TestBorrower& held = leased(made("held.test"));
  Destination& waited = made("waited.test");
  TestBorrower& waiting = borrower_on();
  ASSERT_EQ(waiting.borrow(waited), State::waiting);
  made("paused.test").pause(world.now);
  Limits ready;
  ready.min_idle = 1;
  ASSERT_TRUE(directory().at(origin_named("ready.test"), ready, world.now));
  world.now += seconds(100);
  EXPECT_TRUE(unlink_idle().empty());
  EXPECT_EQ(directory().size(), 4U);
  held.release();
}

// ---- eviction for another destination ----

class AFullDirectory : public AnIdlePool {
 protected:
  AFullDirectory() { limits.max_origins = 3; }
  Result<Destination*> look(const std::string& host, Listing listing = Listing::unlisted) {
    world.now += seconds(1);
    return directory().at(origin_named(host), {}, world.now, listing);
  }
  bool make_room() {
    world.on(0);
    return directory().make_room(world.now);
  }
  bool has(const std::string& host) {
    const Destination* found = directory().find(origin_named(host));
    return found != nullptr && !found->reclaimed();
  }
};

TEST_F(AFullDirectory, ReplacesAPoolThatNeverConnectedThenTheLeastRecentlyUsed) {
  leased(**look("old")).release();
  leased(**look("young")).release();
  EXPECT_TRUE(look("nowhere"));
  ASSERT_FALSE(look("another"));
  ASSERT_TRUE(make_room());
  EXPECT_FALSE(has("nowhere"));
  ASSERT_TRUE(look("another"));
  leased(**look("another")).release();
  leased(**look("old")).release();
  ASSERT_TRUE(make_room());
  EXPECT_FALSE(has("young")) << "the order of use is that of now";
  EXPECT_TRUE(has("old"));
  EXPECT_EQ(directory().size(), 2U);
  EXPECT_EQ(directory().evicted_count(), 2U);
  EXPECT_EQ(unlink_idle().size(), 2U) << "they leave with the next look, and what they counted is kept";
  EXPECT_EQ(directory().reclaimed_count(), 2U);
  EXPECT_EQ(directory().reclaimed().borrows, 1U);
}

TEST_F(AFullDirectory, ReplacesAPoolWhoseSessionIsIdle) {
  world.next_streams = 3;
  for (const char* host : {"old", "young", "last"}) leased(**look(host)).release();
  ASSERT_FALSE(look("another"));
  ASSERT_TRUE(make_room());
  EXPECT_FALSE(has("old"));
  EXPECT_TRUE(has("young")) << "one pool makes room for one origin";
  EXPECT_TRUE(look("another"));
  EXPECT_EQ(unlink_idle().size(), 1U);
  EXPECT_EQ(directory().audit().text(), "") << "its session has a place until its loop disposes of it";
  world.deliver_all();
  EXPECT_EQ(directory().audit().text(), "");
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::idle});
  EXPECT_EQ(world.live.size(), 2U);
}

TEST_F(AFullDirectory, EndsNoPoolWhoseConnectionAHealthCheckHolds) {
  leased(**look("probed")).release();
  const test::FakeConnection& wire = **world.live.begin();
  world.on(0);
  Lease probe = (*look("probed"))->lease_idle(wire.index, wire.generation, world.now);
  ASSERT_TRUE(probe);
  EXPECT_FALSE(make_room());
  probe.return_unused(world.now);
  EXPECT_TRUE(make_room());
}

TEST_F(AFullDirectory, EndsNoPoolThatIsUsedOrConfigured) {
  TestBorrower& held = leased(**look("held"));
  EXPECT_TRUE(look("configured", Listing::configured));
  TestBorrower& waits = borrower_on();
  ASSERT_EQ(waits.borrow(**look("waits")), State::waiting);
  EXPECT_FALSE(make_room());
  EXPECT_EQ(directory().size(), 3U);
  held.release();
  EXPECT_TRUE(make_room());
  EXPECT_FALSE(has("held"));
}

TEST_F(AFullDirectory, ClosesNoIdleConnectionOfAPoolThatIsUsed) {
  Destination& used = **look("used");
  TestBorrower& held = leased(used);
  TestBorrower& other = leased(used);
  other.release();
  EXPECT_FALSE(make_room());
  world.now += seconds(10);
  EXPECT_TRUE(unlink_idle().empty());
  EXPECT_TRUE(used.has_idle());
  EXPECT_TRUE(world.closed.empty());
  held.release();
  EXPECT_TRUE(make_room());
}

TEST_F(AFullDirectory, KeepsThePlacesOfConfiguredOrigins) {
  directory().keep_places(1);
  EXPECT_TRUE(look("a"));
  EXPECT_TRUE(look("b"));
  EXPECT_FALSE(look("c"));
  EXPECT_TRUE(look("configured", Listing::configured));
  EXPECT_FALSE(look("c"));
}

TEST_F(AFullDirectory, FollowsAReloadThatNamesAnOrigin) {
  EXPECT_TRUE(look("a"));
  EXPECT_TRUE(look("b"));
  EXPECT_TRUE(look("c"));
  directory().keep_places(1);
  directory().set_listing(**look("a"), Listing::configured);
  EXPECT_TRUE(make_room());
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("b"));
  directory().set_listing(**look("a"), Listing::unlisted);
  directory().keep_places(0);
  EXPECT_TRUE(make_room());
  EXPECT_FALSE(has("c"));
  EXPECT_TRUE(make_room());
  EXPECT_FALSE(has("a"));
}

TEST_F(AFullDirectory, HoldsHalfAsManyThatLeaveAsItHasPlaces) {
  limits.max_origins = 300;
  for (int n = 0; n < 300; ++n) EXPECT_TRUE(look("x" + std::to_string(n)));
  for (int n = 300; n < 450; ++n) {
    ASSERT_TRUE(make_room());
    ASSERT_TRUE(look("x" + std::to_string(n)));
  }
  EXPECT_FALSE(make_room()) << "memory is bounded: they have to be buried first";
  world.on(0);
  const std::vector<Destination*> gone =
      directory().unlink_idle(world.now, seconds(3600), [](const Destination&) { return false; });
  EXPECT_EQ(gone.size(), 150U);
  EXPECT_FALSE(make_room());
  EXPECT_TRUE(directory().destroy(gone));
  EXPECT_TRUE(make_room());
}

TEST_F(AFullDirectory, FindsThePlacesInTheOrderOfUse) {
  limits.max_origins = 500;
  for (int n = 0; n < 500; ++n) leased(**look("x" + std::to_string(n))).release();
  for (int n = 0; n < 64; ++n) {
    ASSERT_TRUE(make_room());
    EXPECT_FALSE(has("x" + std::to_string(n)));
  }
}

// The sweeper's race: a caller found the destination a moment before it was removed.
TEST_F(AnIdlePool, SendsALateBorrowerToItsSuccessor) {
  Destination& old = made("a.test");
  world.now += seconds(10);
  ASSERT_EQ(unlink_idle().size(), 1U);
  TestBorrower& late = borrower_on();
  EXPECT_EQ(late.borrow(old), State::refused);
  EXPECT_TRUE(old.reclaimed()) << "look again";
  Destination& successor = made("a.test");
  EXPECT_NE(&successor, &old);
  EXPECT_EQ(leased(successor).state, State::leased);
  EXPECT_TRUE(directory().destroy({&old}));
}

TEST_F(AnIdlePool, LeavesItsCountsToItsOriginIfItIsReplaced) {
  Destination& old = made("a.test");
  leased(old).release();
  Limits now = old.limits();
  now.replaced = true;
  old.set_limits(now, world.now);
  ASSERT_EQ(unlink_idle(), std::vector<Destination*>{&old});
  EXPECT_EQ(directory().replaced().at("http://a.test").borrows, 1U);
  EXPECT_EQ(directory().reclaimed().borrows, 0U);
  Destination& successor = made("a.test");
  leased(successor).release();
  leased(made("b.test")).release();
  world.now += seconds(10);
  ASSERT_EQ(unlink_idle().size(), 2U);
  EXPECT_EQ(directory().replaced().at("http://a.test").borrows, 2U) << "the sum does not fall when the successor ends";
  EXPECT_EQ(directory().replaced().size(), 1U);
  EXPECT_EQ(directory().reclaimed().borrows, 1U);
}

TEST_F(AnIdlePool, IsNotFoundAgainOnceItEnded) {
  Destination& old = made("a.test");
  world.now += seconds(10);
  world.on(0);
  ASSERT_TRUE(old.reclaim(world.now, seconds(10)));
  EXPECT_NE(&made("a.test"), &old) << "even before it is taken out";
}

TEST_F(AnIdlePool, StaysWhileThePoolsAreIterated) {
  Destination& one = made("a.test");
  world.now += seconds(10);
  {
    const auto held = directory().hold();
    EXPECT_TRUE(unlink_idle().empty());
  }
  ASSERT_EQ(unlink_idle().size(), 1U);
  {
    const auto held = directory().hold();
    EXPECT_FALSE(directory().destroy({&one}));
  }
  EXPECT_TRUE(directory().destroy({&one}));
}

}  // namespace
}  // namespace carpool::pool
