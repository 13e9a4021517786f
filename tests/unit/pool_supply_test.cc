// Unit tests of Supply: each verb changes all counters that depend on it, and an impossible count ends the process.
#include "pool/destination/supply.h"

#include <gtest/gtest.h>

namespace carpool::pool {
namespace {

constexpr Supply::Dial kForAWaiter{ProtocolMask::any, OpenCause::all_busy};
constexpr Supply::Dial kForHttp1{ProtocolMask::h1_only, OpenCause::all_busy};
constexpr Supply::Dial kAhead{ProtocolMask::any, OpenCause::min_idle};
constexpr Supply::Dial kSuccessor{ProtocolMask::any, OpenCause::reconnect};

TEST(Supply, CountsADialByItsProtocolAndItsCause) {
  Supply supply(0);
  for (const Supply::Dial& dial : {kForAWaiter, kForHttp1, kAhead, kSuccessor}) supply.dial_begun(dial);
  EXPECT_EQ(4U, supply.alive());
  EXPECT_EQ(4U, supply.dials());
  EXPECT_EQ(1U, supply.h1_dials());
  EXPECT_EQ(3U, supply.wide_dials());
  EXPECT_EQ(1U, supply.waiter_dials()) << "a dial for future demand, or of a successor, is no waiter's";
  EXPECT_EQ(1U, supply.redials());
}

TEST(Supply, AFailedDialLeavesNothing) {
  for (const Supply::Dial& dial : {kForAWaiter, kForHttp1, kAhead, kSuccessor}) {
    Supply supply(0);
    supply.dial_begun(dial);
    supply.dial_failed(dial);
    EXPECT_EQ(0U, supply.alive());
    EXPECT_EQ(0U, supply.dials() + supply.h1_dials() + supply.waiter_dials() + supply.redials());
    EXPECT_EQ(0U, supply.held(Protocol::h1) + supply.held(Protocol::h2));
  }
}

TEST(Supply, AnOpenedConnectionIsADialNoMore) {
  for (const Protocol kind : {Protocol::h1, Protocol::h2}) {
    Supply supply(0);
    supply.dial_begun(kForAWaiter);
    supply.opened(kForAWaiter, kind);
    EXPECT_EQ(1U, supply.alive());
    EXPECT_EQ(0U, supply.dials());
    EXPECT_EQ(0U, supply.waiter_dials());
    EXPECT_EQ(1U, supply.held(kind));
    supply.closed(kind, false);
    EXPECT_EQ(0U, supply.alive());
    EXPECT_EQ(0U, supply.held(kind));
  }
}

TEST(Supply, ADrainedSessionCountsUntilItCloses) {
  Supply supply(0);
  supply.dial_begun(kForAWaiter);
  supply.opened(kForAWaiter, Protocol::h2);
  supply.drained();
  EXPECT_EQ(0U, supply.held(Protocol::h2));
  EXPECT_EQ(1U, supply.draining());
  EXPECT_EQ(1U, supply.alive());
  supply.closed(Protocol::h2, true);
  EXPECT_EQ(0U, supply.draining());
  EXPECT_EQ(0U, supply.alive());
}

TEST(Supply, ADialIsExpectedToServeAsManyAsTheLastConnection) {
  Supply supply(0);
  supply.dial_begun(kForAWaiter);
  supply.dial_begun(kForHttp1);
  EXPECT_EQ(2U, supply.streams_coming()) << "unknown: one for each dial";
  supply.expect(100);
  EXPECT_EQ(101U, supply.streams_coming()) << "HTTP/1.1 serves one";
}

TEST(Supply, EachCancelMessageCountsAgainstOneDialOfAWaiter) {
  Supply supply(0);
  supply.dial_begun(kAhead);
  EXPECT_FALSE(supply.may_cancel()) << "a dial for future demand continues";
  supply.dial_begun(kForAWaiter);
  supply.dial_begun(kForHttp1);
  EXPECT_TRUE(supply.may_cancel());
  supply.cancel_sent();
  EXPECT_TRUE(supply.may_cancel());
  EXPECT_EQ(2U, supply.lasting_dials());
  supply.cancel_sent();
  EXPECT_FALSE(supply.may_cancel());
  supply.cancel_arrived();
  EXPECT_TRUE(supply.may_cancel());
}

TEST(Supply, ACancelMessageMayArriveAfterItsDialEnded) {
  Supply supply(0);
  supply.dial_begun(kForAWaiter);
  supply.cancel_sent();
  supply.dial_failed(kForAWaiter);
  EXPECT_EQ(0U, supply.lasting_dials());
  EXPECT_FALSE(supply.may_cancel());
  supply.cancel_arrived();
  EXPECT_EQ(0U, supply.cancels());
}

TEST(SupplyDeathTest, NoVerbSubtractsAnUncountedConnection) {
  EXPECT_DEATH(Supply(0).dial_failed(kForAWaiter), "alive_");
  EXPECT_DEATH(Supply(0).opened(kForAWaiter, Protocol::h1), "alive_");
  EXPECT_DEATH(Supply(0).drained(), "alive_");
  EXPECT_DEATH(Supply(0).closed(Protocol::h1, false), "alive_");
  EXPECT_DEATH(Supply(0).cancel_arrived(), "cancels_");
}

TEST(SupplyDeathTest, ADialEndsAsTheKindItBegan) {
  Supply supply(0);
  supply.dial_begun(kAhead);
  EXPECT_DEATH(supply.dial_failed(kForHttp1), "h1_dials_");
  EXPECT_DEATH(supply.dial_failed(kForAWaiter), "waiter_dials_");
  EXPECT_DEATH(supply.opened(kSuccessor, Protocol::h1), "redials_");
}

TEST(SupplyDeathTest, AConnectionClosesAsTheKindItOpened) {
  Supply supply(0);
  supply.dial_begun(kForAWaiter);
  supply.opened(kForAWaiter, Protocol::h1);
  EXPECT_DEATH(supply.closed(Protocol::h2, false), "held_");
  EXPECT_DEATH(supply.closed(Protocol::h1, true), "draining_");
  EXPECT_DEATH(supply.drained(), "held_");
}

}  // namespace
}  // namespace carpool::pool
