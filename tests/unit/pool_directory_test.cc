// What spans destinations: one per origin, and one total of connections.
#include "pool/directory.h"

#include <gtest/gtest.h>

#include "tests/unit/pool_scene.h"

namespace carpool::pool {
namespace {

using std::chrono::seconds;
using test::Asker;
using test::origin_named;
using test::World;
using State = Asker::State;

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
  Asker& asker() { return askers_.emplace_back(world, LoopId{0}); }
  Asker& leased(Destination& destination) {
    Asker& one = asker();
    if (one.borrow(destination) == State::waiting) settle();
    EXPECT_EQ(one.state, State::leased);
    return one;
  }
  void settle() {
    while (!world.dials.empty()) world.dialed();
    world.deliver_all();
  }
  void TearDown() override {
    for (int rounds = 0; rounds < 20; ++rounds) {
      settle();
      for (Asker& one : askers_) {
        if (one.state == State::leased) one.release();
      }
      EXPECT_EQ(directory().connections(), world.live.size() + world.dials.size());
    }
    for (Asker& one : askers_) EXPECT_NE(one.state, State::waiting) << "forgotten";
  }
  World world;
  DirectoryLimits limits;

 private:
  std::deque<Asker> askers_;
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

TEST_F(ADirectory, RefusesMoreOriginsThanItMayHold) {
  limits.max_origins = 1;
  at("a");
  Result<Destination*> second = directory().at(origin_named("b"), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.fault().kind, FaultKind::origins_exhausted);
  EXPECT_TRUE(directory().at(origin_named("a"), {}));
}

TEST_F(ADirectory, TakesAnIdleConnectionOfTheLeastRecentlyUsedDestinationWhenTheTotalIsReached) {
  limits.max_connections = 2;
  leased(at("old")).release();
  world.now += seconds(1);
  leased(at("recent")).release();
  leased(at("new"));
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::budget});
  EXPECT_FALSE(at("old").has_idle());
  EXPECT_TRUE(at("recent").has_idle());
  EXPECT_EQ(world.most, 2U);
}

TEST_F(ADirectory, LetsABorrowerWaitForThePlaceThatAnotherDestinationGivesBack) {
  limits.max_connections = 1;
  Asker& holder = leased(at("a"));
  Asker& one = asker();
  EXPECT_EQ(one.borrow(at("b")), State::waiting);
  EXPECT_TRUE(world.dials.empty());
  holder.discard(Closed::error);
  settle();
  EXPECT_EQ(one.state, State::leased);
}

TEST_F(ADirectory, TakesAConnectionThatComesToRestWhileSomebodyElseStarves) {
  limits.max_connections = 1;
  Asker& holder = leased(at("a"));
  Asker& one = asker();
  one.borrow(at("b"));
  holder.release();
  settle();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(world.closed, std::vector<Closed>{Closed::budget});
}

TEST_F(ADirectory, LeavesThePlaceToTheNextWhenTheOneThatWantedItIsGone) {
  limits.max_connections = 1;
  Asker& holder = leased(at("a"));
  Asker& gone = asker();
  gone.borrow(at("b"));
  Asker& next = asker();
  next.borrow(at("c"));
  gone.cancel();
  holder.discard(Closed::error);
  settle();
  EXPECT_EQ(next.state, State::leased);
}

TEST_F(ADirectory, RefusesWithTheBudgetWhenNobodyMayWait) {
  limits.max_connections = 1;
  leased(at("a"));
  Limits own;
  own.max_waiting = 0;
  Asker& one = asker();
  ASSERT_EQ(one.borrow(**directory().at(origin_named("b"), own)), State::refused);
  EXPECT_EQ(one.fault->kind, FaultKind::budget);
}

TEST_F(ADirectory, SweepsAndStopsEveryDestination) {
  leased(at("a")).release();
  leased(at("b")).release();
  directory().stop(world.now);
  EXPECT_EQ(world.closed, (std::vector<Closed>{Closed::shutdown, Closed::shutdown}));
  EXPECT_EQ(directory().connections(), 0U);
}

}  // namespace
}  // namespace carpool::pool
