// The fixture of the destination's tests: one destination in a World, askers, and at the end everything wound up and
// nobody forgotten.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "tests/sim/pool_world.h"

namespace carpool::test {

inline pool::Origin origin_named(std::string host) {
  pool::Origin origin;
  origin.host = std::move(host);
  origin.port = 80;
  return origin;
}

class PoolScene : public testing::Test {
 protected:
  explicit PoolScene(std::uint32_t size) : world(kLoops) { limits.size = size; }

  Destination& destination() {
    if (!made_) made_ = std::make_unique<Destination>(origin_named("origin"), limits, world, kLoops);
    return *made_;
  }
  Destination::Snapshot snapshot() { return destination().snapshot(world.now); }

  Asker& asker(LoopId loop = 0) { return askers_.emplace_back(world, loop); }
  Asker& waiting(const pool::Want& want = {}, LoopId loop = 0) {
    Asker& one = asker(loop);
    EXPECT_EQ(one.borrow(destination(), want), Asker::State::waiting);
    return one;
  }
  Asker& leased(LoopId loop = 0) {
    Asker& one = asker(loop);
    if (one.borrow(destination()) == Asker::State::waiting) {
      world.dialed();
      world.deliver_all();
    }
    EXPECT_EQ(one.state, Asker::State::leased);
    return one;
  }
  // A connection that rests on `loop`.
  Wire& resting(LoopId loop = 0) {
    Asker& one = leased(loop);
    Wire& wire = one.wire();
    one.release();
    return wire;
  }
  void rest(Duration time) { world.now += time; }

  // Lets everything that is under way end well: then nobody may wait and everything is given back.
  void TearDown() override {
    int rounds = 0;
    for (bool more = true; more;) {
      ASSERT_LT(++rounds, 10000) << "it never comes to rest";
      more = world.deliver_all() || settle_dials() || give_back();
      world.now += std::chrono::seconds(2);
      world.on(0);
      destination().sweep(world.now);
      more |= !world.dials.empty() || !world.mail_empty();
    }
    for (Asker& one : askers_) EXPECT_NE(one.state, Asker::State::waiting) << "forgotten";
    const Destination::Snapshot end = snapshot();
    EXPECT_EQ(end.borrows, end.restores);
    EXPECT_EQ(end.opened_total() - end.closed_total(), end.alive());
    EXPECT_EQ(end.alive(), world.live.size());
    EXPECT_EQ(world.wrong, "");
  }

  static constexpr unsigned kLoops = 2;
  World world;
  pool::Limits limits;

 private:
  bool settle_dials() {
    const bool any = !world.dials.empty();
    while (!world.dials.empty()) world.dialed();
    return any;
  }
  bool give_back() {
    bool any = false;
    for (Asker& one : askers_) {
      if (one.state != Asker::State::leased) continue;
      one.release();
      any = true;
    }
    return any;
  }
  std::deque<Asker> askers_;
  std::unique_ptr<Destination> made_;
};

}  // namespace carpool::test

// What the destination's tests say all the time.
namespace carpool::pool {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Asker;
using test::Wire;
using State = Asker::State;

}  // namespace carpool::pool
