// The fixture of the destination's tests: one destination in a FakeEnvironment, borrowers, and a final check that
// everything completed and no borrower was forgotten.
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

  TestBorrower& borrower_on(LoopId loop = 0) { return borrowers_.emplace_back(world, loop); }
  TestBorrower& waiting(const pool::BorrowRequest& want = {}, LoopId loop = 0) {
    TestBorrower& one = borrower_on(loop);
    EXPECT_EQ(one.borrow(destination(), want), TestBorrower::State::waiting);
    return one;
  }
  TestBorrower& leased(LoopId loop = 0) {
    TestBorrower& one = borrower_on(loop);
    if (one.borrow(destination()) == TestBorrower::State::waiting) {
      world.dialed();
      world.deliver_all();
    }
    EXPECT_EQ(one.state, TestBorrower::State::leased);
    return one;
  }
  // An idle connection on `loop`.
  FakeConnection& idle_connection(LoopId loop = 0) {
    TestBorrower& one = leased(loop);
    FakeConnection& wire = one.wire();
    one.release();
    return wire;
  }
  void rest(Duration time) { world.now += time; }

  // Completes everything in progress: then no borrower may wait and every lease must be released.
  void TearDown() override {
    int rounds = 0;
    for (bool more = true; more;) {
      ASSERT_LT(++rounds, 10000) << "it never comes to rest";
      more = world.deliver_all() || complete_dials() || give_back();
      world.now += std::chrono::seconds(2);
      world.on(0);
      destination().sweep(world.now);
      more |= !world.dials.empty() || !world.mail_empty();
    }
    for (TestBorrower& one : borrowers_) EXPECT_NE(one.state, TestBorrower::State::waiting) << "forgotten";
    const Destination::Snapshot end = snapshot();
    EXPECT_EQ(end.borrows, end.restores);
    EXPECT_EQ(end.opened_total() - end.closed_total(), end.alive());
    EXPECT_EQ(end.alive(), world.live.size());
    EXPECT_EQ(world.wrong, "");
    EXPECT_EQ(audited(), "");
  }
  // The recount, in which every borrower of the test is in borrowers_.
  std::string audited() {
    std::vector<const TestBorrower*> borrowers;
    for (const TestBorrower& one : borrowers_) borrowers.push_back(&one);
    return audit(world, destination(), borrowers);
  }

  static constexpr unsigned kLoops = 2;
  FakeEnvironment world;
  pool::Limits limits;

 private:
  bool complete_dials() {
    const bool any = !world.dials.empty();
    while (!world.dials.empty()) world.dialed();
    return any;
  }
  bool give_back() {
    bool any = false;
    for (TestBorrower& one : borrowers_) {
      if (one.state != TestBorrower::State::leased) continue;
      one.release();
      any = true;
    }
    return any;
  }
  std::deque<TestBorrower> borrowers_;
  std::unique_ptr<Destination> made_;
};

}  // namespace carpool::test

// Shorthands of the destination's tests.
namespace carpool::pool {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeConnection;
using test::TestBorrower;
using State = TestBorrower::State;

}  // namespace carpool::pool
