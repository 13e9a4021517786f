// Unit tests of BatchLease: a write batch belongs to one write queue from its lease to send() or discard(), and nothing
// else can end the lease.
#include "proxy/net/batch_lease.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/proxy_wire.h"

namespace carpool::proxy {
namespace {

using testing::Wire;

class ABatchLease : public ::testing::Test {
 protected:
  BatchLease lease(Wire& wire) { return {store_, wire.write_queue, *wire.transport}; }
  exec::EventLeases leases_;
  BatchStore store_{leases_};
};

TEST_F(ABatchLease, SendsItsBytesThroughItsOwnOutboxWhateverElseIsLeased) {
  Wire one, other;
  BatchLease first = lease(one);
  first.text().append("for one");
  BatchLease second = lease(other);
  second.text().append("for the other");
  EXPECT_EQ(leases_.out(), 2U);
  EXPECT_EQ(second.send(), WriteQueue::Sent::all);
  EXPECT_EQ(first.send(), WriteQueue::Sent::all);
  EXPECT_EQ(one.read_all(), "for one");
  EXPECT_EQ(other.read_all(), "for the other");
  EXPECT_EQ(leases_.out(), 0U);
}

TEST_F(ABatchLease, LeavesNothingBehindWhenItIsDiscarded) {
  Wire one, other;
  BatchLease first = lease(one);
  first.text().append("never sent");
  first.discard();
  EXPECT_FALSE(first);
  BatchLease second = lease(other);  // the same memory
  EXPECT_TRUE(second.empty());
  second.text().append("x");
  EXPECT_EQ(second.send(), WriteQueue::Sent::all);
  EXPECT_EQ(one.read_all(), "");
  EXPECT_EQ(other.read_all(), "x");
}

TEST_F(ABatchLease, MayEndWithoutACallWhileItIsEmpty) {
  Wire wire;
  { const BatchLease unused = lease(wire); }
  EXPECT_EQ(leases_.out(), 0U);
  lease(wire).discard();
}

TEST_F(ABatchLease, MovesWithItsBytes) {
  Wire wire;
  BatchLease held;
  held = lease(wire);
  held.text().append("moved");
  BatchLease next = std::move(held);
  EXPECT_FALSE(held);  // NOLINT(bugprone-use-after-move): a lease that was moved from holds no batch
  EXPECT_EQ(next.send(), WriteQueue::Sent::all);
  EXPECT_EQ(wire.read_all(), "moved");
}

class ABatchLeaseDeathTest : public ABatchLease {
 protected:
  ABatchLeaseDeathTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(ABatchLeaseDeathTest, IsTheOnlyOneOfItsOutbox) {
  EXPECT_DEATH(
      {
        Wire wire;
        const BatchLease first = lease(wire);
        const BatchLease second = lease(wire);
      },
      "impossible state");
}

TEST_F(ABatchLeaseDeathTest, IsNotPassedBy) {
  EXPECT_DEATH(
      {
        Wire wire;
        const BatchLease first = lease(wire);
        WriteBatch other;
        static_cast<void>(wire.write_queue.send(*wire.transport, other));
      },
      "impossible state");
}

TEST_F(ABatchLeaseDeathTest, LosesNoBytes) {
  EXPECT_DEATH(
      {
        Wire wire;
        BatchLease forgotten = lease(wire);
        forgotten.text().append("x");
      },
      "impossible state");
}

TEST_F(ABatchLeaseDeathTest, IsNotOverwritten) {
  EXPECT_DEATH(
      {
        Wire one;
        Wire other;
        BatchLease held = lease(one);
        held = lease(other);
      },
      "impossible state");
}

}  // namespace
}  // namespace carpool::proxy
