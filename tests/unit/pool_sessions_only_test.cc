// Unit tests of an origin without HTTP/1.1: it refuses the dial for a request that needs it, and works otherwise.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

struct AnOriginOfSessionsOnly : test::PoolScene {
  AnOriginOfSessionsOnly() : PoolScene(1) {
    limits.expected_streams = 0;
    world.next_streams = 3;
  }
  static BorrowRequest only_http1() {
    BorrowRequest want;
    want.kind = ProtocolMask::h1_only;
    return want;
  }
  // It has served HTTP/1.1 before.
  TestBorrower& leased_http1() {
    limits.size = 8;
    world.next_streams = 0;
    TestBorrower& holder = waiting(only_http1());
    world.dialed();
    world.deliver_all();
    EXPECT_EQ(holder.state, State::leased);
    return holder;
  }
  const Fault no_http1{FaultKind::tls_protocol, Side::client, "no HTTP/1.1"};
};

TEST_F(AnOriginOfSessionsOnly, ServesTheOthersWhenTheOnlyPlaceWasThatOfARefusedDial) {
  TestBorrower& socket = waiting(only_http1());
  TestBorrower& other = waiting();
  ASSERT_EQ(world.dials.size(), 1U);
  world.dial_failed(0, no_http1);
  world.deliver_all();
  ASSERT_EQ(socket.state, State::refused);
  EXPECT_EQ(socket.fault->kind, FaultKind::tls_protocol);
  EXPECT_EQ(other.state, State::waiting);
  EXPECT_FALSE(snapshot().probing) << "the origin works";
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(other.state, State::leased);
}

TEST_F(AnOriginOfSessionsOnly, RefusesNoneOfThoseWhoWaitForItsFirstSession) {
  limits.size = 8;
  TestBorrower& socket = waiting(only_http1());
  std::vector<TestBorrower*> others;
  for (int n = 0; n < 4; ++n) others.push_back(&waiting());
  ASSERT_EQ(world.dials.size(), 3U);
  world.dial_failed(0, no_http1);
  world.deliver_all();
  EXPECT_EQ(socket.state, State::refused);
  for (const TestBorrower* other : others) EXPECT_EQ(other->state, State::waiting);
}

TEST_F(AnOriginOfSessionsOnly, RefusesOneForEachDialThoughOthersAreUnderWay) {
  limits.size = 8;
  TestBorrower& first = waiting(only_http1());
  TestBorrower& second = waiting(only_http1());
  ASSERT_EQ(world.dials.size(), 2U);
  for (TestBorrower* one : {&first, &second}) {
    EXPECT_EQ(one->state, State::waiting);
    world.dial_failed(0, no_http1);
    world.deliver_all();
    EXPECT_EQ(one->state, State::refused);
  }
  EXPECT_TRUE(world.dials.empty());
}

TEST_F(AnOriginOfSessionsOnly, IsDialedAsBeforeHoweverManyDialsItRefused) {
  limits.size = 8;
  for (int n = 0; n < 20; ++n) {
    TestBorrower& socket = waiting(only_http1());
    world.dial_failed(0, no_http1);
    world.deliver_all();
    EXPECT_EQ(socket.state, State::refused);
  }
  waiting();
  EXPECT_EQ(world.dials.size(), 1U);
}

// A tunnel serves no waiter.
TEST_F(AnOriginOfSessionsOnly, RefusesAWaiterBesideATunnelAtOnce) {
  leased_http1().lease.become_tunnel();
  TestBorrower& socket = waiting(only_http1());
  world.dial_failed(0, no_http1);
  world.deliver_all();
  EXPECT_EQ(socket.state, State::refused);
  EXPECT_TRUE(world.dials.empty());
}

TEST_F(AnOriginOfSessionsOnly, RefusesNoneWhomABusyConnectionWillServe) {
  TestBorrower& holder = leased_http1();
  TestBorrower& socket = waiting(only_http1());
  TestBorrower& other = waiting();
  BorrowRequest alone = only_http1();
  alone.new_connection_only = true;
  TestBorrower& retry = waiting(alone);
  while (!world.dials.empty() && retry.state == State::waiting) {
    world.dial_failed(0, no_http1);
    world.deliver_all();
  }
  EXPECT_EQ(retry.state, State::refused) << "no open connection serves it";
  EXPECT_EQ(socket.state, State::waiting);
  EXPECT_EQ(other.state, State::waiting);
  EXPECT_FALSE(snapshot().probing) << "the origin works";
  EXPECT_LE(world.dials.size(), 2U) << "the dials pause";
  holder.release();
  world.deliver_all();
  EXPECT_EQ(socket.state, State::leased);
}

}  // namespace
}  // namespace carpool::pool
