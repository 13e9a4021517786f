// Unit tests of readiness events: an event names (index, generation), and by the time it is handled the connection may
// be borrowed, moved, closed, or replaced by another in the same slot.
#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::seconds;
using test::FakeConnection;
using test::TestBorrower;
using State = TestBorrower::State;
using Kind = EventClaim::Kind;

class AnEvent : public test::PoolScene {
 protected:
  AnEvent() : PoolScene(1) {}
  Kind claim(std::uint32_t index, std::uint32_t generation, LoopId loop) {
    world.on(loop);
    return claim_event(index, generation, loop).kind;
  }
};

TEST_F(AnEvent, OfAnIdleConnectionLeadsToAnInspection) {
  FakeConnection& wire = idle_connection();
  world.close_by_peer(wire);
  EXPECT_TRUE(world.event_one(0));
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::peer_closed});
}

TEST_F(AnEvent, WithNothingBehindItLeavesTheConnectionIdle) {
  FakeConnection& wire = idle_connection();
  world.events[0].push_back({wire.index, wire.generation, false});
  world.event_one(0);
  EXPECT_TRUE(world.closed.empty());
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

TEST_F(AnEvent, OfABorrowedConnectionIsItsUsers) {
  TestBorrower& one = leased();
  EXPECT_EQ(claim(one.wire().index, one.wire().generation, 0), Kind::in_use);
}

TEST_F(AnEvent, OfAConnectionInTheMailToItsOwnLoopIsRecordedNotDropped) {
  TestBorrower& holder = leased(0);
  FakeConnection& wire = holder.wire();
  waiting({}, 0);
  holder.release();
  EXPECT_EQ(claim(wire.index, wire.generation, 0), Kind::in_use);
}

TEST_F(AnEvent, OfAConnectionThatMovedToAnotherLoopIsStale) {
  FakeConnection& wire = idle_connection(0);
  const std::uint32_t index = wire.index, generation = wire.generation;
  TestBorrower& taker = borrower_on(1);
  ASSERT_EQ(taker.borrow(destination()), State::leased);
  EXPECT_EQ(claim(index, generation, 0), Kind::stale);
  EXPECT_EQ(claim(index, generation, 1), Kind::stale);
  EXPECT_EQ(claim(wire.index, wire.generation, 1), Kind::in_use);
}

TEST_F(AnEvent, OfAConnectionThatMovedAwayAndCameBackIsStale) {
  FakeConnection& wire = idle_connection(0);
  const std::uint32_t index = wire.index, generation = wire.generation;
  TestBorrower& taker = borrower_on(1);
  ASSERT_EQ(taker.borrow(destination()), State::leased);
  waiting({}, 0);
  taker.release();
  world.deliver_all();
  EXPECT_EQ(wire.watched_on, LoopId{0});
  EXPECT_EQ(claim(index, generation, 0), Kind::stale);
}

TEST_F(AnEvent, OfAClosedConnectionDoesNotTouchTheNextOneInItsPlace) {
  FakeConnection& first = idle_connection();
  const std::uint32_t index = first.index;
  world.close_by_peer(first);  // The event is in flight ...
  TestBorrower& one = borrower_on();
  ASSERT_EQ(one.borrow(destination()), State::leased);
  one.release();  // ... the release saw it as well, and closed the connection ...
  ASSERT_EQ(world.closed, std::vector<CloseCause>{CloseCause::peer_closed});
  FakeConnection& second = idle_connection();  // ... another connection has its slot ...
  ASSERT_EQ(second.index, index);
  world.event_one(0);  // ... and now the event arrives.
  EXPECT_TRUE(world.is_live(second)) << "a healthy connection was killed";
  EXPECT_EQ(world.wrong, "");
}

TEST_F(AnEvent, OfADestinationThatIsGoneIsStale) {
  std::uint32_t index = 0, generation = 0;
  {
    test::FakeEnvironment other(1);
    Destination brief(test::origin_named("brief"), limits, other, 1);
    TestBorrower one(other, 0);
    one.borrow(brief);
    other.dialed();
    other.deliver_all();
    index = one.wire().index;
    generation = one.wire().generation;
    one.release();
  }
  EXPECT_EQ(claim(index, generation, 0), Kind::stale);
}

TEST_F(AnEvent, KeepsBorrowersFromDialingWhileItIsLookedAt) {
  limits.size = 2;
  FakeConnection& wire = idle_connection(0);
  ASSERT_EQ(claim(wire.index, wire.generation, 0), Kind::inspecting);
  TestBorrower& one = waiting({}, 1);
  EXPECT_TRUE(world.dials.empty());
  world.on(0);
  keep_inspected(wire.index, world.now);
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased) << "idle again, it was offered to the line";
}

TEST_F(AnEvent, ThatFoundTheConnectionDeadLetsTheQueueDial) {
  FakeConnection& wire = idle_connection(0);
  ASSERT_EQ(claim(wire.index, wire.generation, 0), Kind::inspecting);
  waiting({}, 1);
  wire.peer_closed = true;
  world.on(0);
  close_inspected(wire.index, CloseCause::peer_closed, world.now);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::stale_found);
}

TEST_F(AnEvent, UnderInspectionAtTheStopIsClosedAfterIt) {
  FakeConnection& wire = idle_connection(0);
  ASSERT_EQ(claim(wire.index, wire.generation, 0), Kind::inspecting);
  destination().stop(world.now);
  EXPECT_EQ(world.live.size(), 1U);
  keep_inspected(wire.index, world.now);
  EXPECT_TRUE(world.live.empty());
}

}  // namespace
}  // namespace carpool::pool
