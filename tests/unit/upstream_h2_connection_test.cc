// Unit tests of sessions to origins on wires in memory: the simulation's findings, step by step.
#include <gtest/gtest.h>

#include "tests/sim/session_asker.h"

namespace carpool::test {
namespace {

// One loop, one session, one borrower.
class ASession : public testing::Test {
 protected:
  ASession() {
    pool::Limits limits;
    limits.size = 1;
    limits.expected_streams = 100;
    pool::Origin origin;
    origin.host = "origin.test";
    origin.port = 80;
    world_.destination = *directory_.at(origin, limits);
    world_.context.destination = world_.destination;
  }
  ~ASession() override {
    go_on();
    directory_.stop(world_.now);
    go_on();
  }
  // Runs until nothing more happens, without advancing time.
  void go_on() {
    for (int rounds = 0; rounds < 1000; ++rounds) {
      world_.turn(0, true);
      asker_.act(true);
      for (Link& link : world_.links) {
        world_.land(link, SIZE_MAX);
        link.origin.act(world_.now, true);
      }
    }
    EXPECT_EQ(world_.errands.wrong, "");
  }
  void ask() { asker_.begin(++asked_); }
  bool answered() {
    const Errand& errand = world_.errands.all[asked_];
    return errand.ends == 1 && errand.whole;
  }
  Random random_{1};
  SessionWorld world_{random_, 1};
  pool::Directory directory_{pool::DirectoryLimits{}, world_, 1};
  SessionAsker asker_{world_, random_, 0};
  std::uint64_t asked_ = 0;
};

constexpr Duration kLongRest = std::chrono::seconds(6);

TEST_F(ASession, ThatIsFoundDeadWhenItIsAskedForASignOfLifePassesItsRequestOn) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.now += kLongRest;
  world_.links.front().origin.cut();
  ask();
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 2U);
}

TEST_F(ASession, AsksForASignOfLifeAsSoonAsTheSocketTakesIt) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.now += kLongRest;
  Wire& wire = world_.links.front().wire;
  wire.room = 0;
  ask();
  go_on();
  EXPECT_FALSE(answered());
  wire.room = 1000;
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 1U);
}

}  // namespace
}  // namespace carpool::test
