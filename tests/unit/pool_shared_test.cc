// Unit tests of shared connections: many users of any loop, changing limits, disposal, and the number of dials.
#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using Kind = EventClaim::Kind;

class ASession : public test::PoolScene {
 protected:
  ASession() : PoolScene(1) { world.next_streams = 3; }

  TestBorrower& on_session(LoopId loop = 0) { return leased(loop); }
  BorrowRequest only(ProtocolMask kind) {
    BorrowRequest want;
    want.kind = kind;
    return want;
  }
  // Borrowers wait before the protocol of the dialed connection is known; `streams` is what it will allow.
  void wait_for_the_unknown(int waiters, std::uint32_t streams) {
    limits.size = 8;
    limits.expected_streams = 0;
    world.next_streams = streams;
    for (int n = 0; n < waiters; ++n) waiting();
    ASSERT_EQ(world.dials.size(), 2U);
    world.dialed();
  }
  std::uint64_t leases() { return snapshot().borrows - snapshot().restores; }
};

TEST_F(ASession, IsLentToAsManyAsItsStreamsAllow) {
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on();
  TestBorrower& three = borrower_on();
  EXPECT_EQ(two.borrow(destination()), State::leased);
  EXPECT_EQ(three.borrow(destination()), State::leased);
  EXPECT_EQ(&one.wire(), &three.wire());
  EXPECT_TRUE(one.lease.shared());
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
  EXPECT_EQ(leases(), 3U);
  EXPECT_EQ(snapshot().alive(), 1U) << "streams are no connections";
}

TEST_F(ASession, GivesAReleasedStreamToTheQueue) {
  TestBorrower& one = on_session();
  borrower_on().borrow(destination());
  borrower_on().borrow(destination());
  TestBorrower& waiter = waiting({}, 1);
  one.release();
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting) << "no barging";
  world.deliver_all();
  EXPECT_EQ(waiter.state, State::leased);
}

TEST_F(ASession, ServesOtherLoopsAndStaysAtHome) {
  TestBorrower& one = on_session(0);
  TestBorrower& far = borrower_on(1);
  ASSERT_EQ(far.borrow(destination()), State::leased);
  EXPECT_EQ(far.lease.home(), 0);
  EXPECT_EQ(&far.wire(), &one.wire());
  one.release();
  far.release();
  EXPECT_EQ(world.moves, 0U);
  EXPECT_EQ(snapshot().of(ConnectionStatus::idle), 1U);
}

TEST_F(ASession, KeepsItsUsersWhenOneOfThemDiscardsIt) {
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on(1);
  two.borrow(destination());
  one.discard(CloseCause::error);
  EXPECT_EQ(world.live.size(), 1U);
  EXPECT_EQ(snapshot().of(ConnectionStatus::draining), 1U);
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting) << "nobody new";
  two.release();
  EXPECT_EQ(world.live.size(), 1U) << "disposed of by mail, on its home loop";
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::error}) << "the cause of the first";
  EXPECT_EQ(world.dials.size(), 1U) << "and then there is a place for who waits";
}

TEST_F(ASession, IsClosedAtOnceWhenItIsRetiredWhileIdle) {
  FakeConnection& wire = idle_connection();
  world.retire(destination(), wire, CloseCause::goaway);
  EXPECT_EQ(snapshot().alive(), 0U);
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::goaway});
}

TEST_F(ASession, FinishesWhatRunsWhenItIsRetired) {
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on(1);
  two.borrow(destination());
  world.retire(destination(), one.wire(), CloseCause::goaway);
  TestBorrower& next = waiting();
  one.release();
  two.discard(CloseCause::error);
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::goaway});
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
}

TEST_F(ASession, ThatIsGoneDoesNotHearWhatIsSaidOfIt) {
  FakeConnection& wire = idle_connection();
  const std::uint32_t index = wire.index, generation = wire.generation;
  world.retire(destination(), wire, CloseCause::goaway);
  world.deliver_all();
  FakeConnection& next = idle_connection();
  ASSERT_EQ(next.index, index);
  world.on(0);
  destination().retire(index, generation, CloseCause::goaway, world.now);
  destination().set_streams(index, generation, 0, world.now);
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
}

TEST_F(ASession, ThatRetiresWhileItsGrantsAreInTheMailPutsTheBorrowersBack) {
  limits.size = 2;
  TestBorrower& one = on_session();
  borrower_on().borrow(destination());
  borrower_on().borrow(destination());
  TestBorrower& first = waiting({}, 1);
  TestBorrower& second = waiting({}, 1);
  world.set_streams(destination(), one.wire(), 5);
  world.retire(destination(), one.wire(), CloseCause::goaway);
  world.deliver_all();
  EXPECT_EQ(first.state, State::waiting);
  EXPECT_EQ(second.state, State::waiting);
  ASSERT_FALSE(world.dials.empty());
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
  EXPECT_NE(&first.wire(), &one.wire());
  EXPECT_EQ(second.state, State::leased);
}

TEST_F(ASession, ServesTheQueueWhenItsLimitRises) {
  TestBorrower& one = on_session();
  borrower_on().borrow(destination());
  borrower_on().borrow(destination());
  TestBorrower& first = waiting();
  TestBorrower& second = waiting({}, 1);
  TestBorrower& third = waiting({}, 1);
  world.set_streams(destination(), one.wire(), 5);
  world.deliver_all();
  EXPECT_EQ(first.state, State::leased);
  EXPECT_EQ(second.state, State::leased);
  EXPECT_EQ(third.state, State::waiting);
}

TEST_F(ASession, TakesNobodyNewWhileItsLimitIsZeroOrBelowItsUsers) {
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on();
  two.borrow(destination());
  world.set_streams(destination(), one.wire(), 1);
  two.release();
  TestBorrower& next = waiting();
  world.set_streams(destination(), one.wire(), 0);
  one.release();
  world.deliver_all();
  EXPECT_EQ(next.state, State::waiting);
  world.set_streams(destination(), **world.live.begin(), 1);
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
}

TEST_F(ASession, PassesAStreamOnWhenItsBorrowerLeft) {
  TestBorrower& one = on_session();
  borrower_on().borrow(destination());
  borrower_on().borrow(destination());
  TestBorrower& gone = waiting({}, 1);
  TestBorrower& also_gone = waiting({}, 1);
  TestBorrower& next = waiting();
  world.set_streams(destination(), one.wire(), 5);
  gone.cancel();
  also_gone.cancel();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
  EXPECT_EQ(leases(), 4U);
}

TEST_F(ASession, ClosesWithItsLastUserWhenItExpires) {
  limits.expire_time = seconds(10);
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on();
  two.borrow(destination());
  rest(seconds(11));
  TestBorrower& three = waiting();
  EXPECT_EQ(snapshot().of(ConnectionStatus::draining), 1U) << "an expired one takes nobody new";
  one.release();
  two.release();
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::expired});
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(three.lease.opened(), OpenCause::expired);
}

TEST_F(ASession, CountsEveryStreamAgainstItsUses) {
  limits.max_usage = 2;
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on();
  ASSERT_EQ(two.borrow(destination()), State::leased);
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
  one.release();
  two.release();
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::max_usage});
}

TEST_F(ASession, GetsItsEventsWhateverItsUsers) {
  TestBorrower& one = on_session();
  FakeConnection& wire = one.wire();
  world.on(0);
  EXPECT_EQ(claim_event(wire.index, wire.generation, 0).kind, Kind::session);
  EXPECT_EQ(claim_event(wire.index, wire.generation, 1).kind, Kind::stale);
  one.release();
  EXPECT_EQ(claim_event(wire.index, wire.generation, 0).kind, Kind::session);
  const std::uint32_t index = wire.index, generation = wire.generation;
  world.retire(destination(), wire, CloseCause::goaway);
  EXPECT_EQ(claim_event(index, generation, 0).kind, Kind::stale) << "though it is not disposed of yet";
  world.deliver_all();
}

TEST_F(ASession, ThatDiesWithALostLeaseIsALeakAndServesItsOthers) {
  TestBorrower& one = on_session(0);
  TestBorrower& two = borrower_on(1);
  two.borrow(destination());
  two.lose();
  EXPECT_EQ(snapshot().leaks, 1U);
  one.release();
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::leak});
}

// ---- origins that allow fewer streams than announced ----

class ASessionThatCameDown : public ASession {
 protected:
  // The first session started with three streams, and one was allowed a moment later.
  ASessionThatCameDown() {
    limits.size = 4;
    first = &on_session();
    world.set_streams(destination(), first->wire(), 1);
  }
  void first_response(TestBorrower& of, std::uint32_t most) {
    of.wire().most = most;
    world.first_response(destination(), of.wire());
  }
  TestBorrower& next() {
    TestBorrower& one = waiting();
    world.dialed();
    world.deliver_all();
    EXPECT_EQ(one.state, State::leased);
    return one;
  }
  TestBorrower* first = nullptr;
};

TEST_F(ASessionThatCameDown, MakesTheNextBeginWithSoManyUntilItsFirstResponse) {
  TestBorrower& one = next();
  EXPECT_NE(&one.wire(), &first->wire());
  TestBorrower& two = waiting();
  first_response(one, 3);
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
  EXPECT_EQ(&two.wire(), &one.wire());
}

TEST_F(ASessionThatCameDown, IsNotForgottenWhileOthersDoTheSame) {
  TestBorrower& one = next();
  world.set_streams(destination(), one.wire(), 1);
  first_response(one, 1);
  world.set_streams(destination(), one.wire(), 3);
  ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  next();
  EXPECT_EQ(borrower_on().borrow(destination()), State::waiting);
}

TEST_F(ASessionThatCameDown, IsForgottenWhenAnotherKeepsItsPromise) {
  TestBorrower& one = next();
  first_response(one, 3);
  ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  TestBorrower& another = next();
  TestBorrower& beside = borrower_on();
  EXPECT_EQ(beside.borrow(destination()), State::leased);
  EXPECT_EQ(&beside.wire(), &another.wire());
}

TEST_F(ASession, ThatComesDownLaterSaysNothingOfTheNext) {
  limits.size = 2;
  TestBorrower& one = on_session();
  world.first_response(destination(), one.wire());
  world.set_streams(destination(), one.wire(), 1);
  TestBorrower& two = waiting();
  TestBorrower& three = waiting();
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  EXPECT_EQ(two.state, State::leased);
  EXPECT_EQ(&two.wire(), &three.wire());
}

// ---- how many are dialed ----

TEST_F(ASession, IsDialedOnceForAllWhomItWillServe) {
  limits.size = 8;
  limits.expected_streams = 10;
  world.next_streams = 10;
  for (int n = 0; n < 10; ++n) waiting();
  EXPECT_EQ(world.dials.size(), 1U);
  waiting();
  EXPECT_EQ(world.dials.size(), 2U);
}

TEST_F(ASession, IsLookedForWithTwoDialsUntilItIsKnownWhatTheyBring) {
  wait_for_the_unknown(5, 10);
  world.deliver_all();
  EXPECT_EQ(snapshot().waiting, 0U) << "the first one serves them all";
}

TEST_F(ASession, ThatIsNoneTopsTheDialsUpAtOnce) {
  wait_for_the_unknown(5, 0);
  EXPECT_EQ(world.dials.size(), 4U) << "four wait, four come";
  while (!world.dials.empty()) world.dialed();
  world.deliver_all();
  world.next_streams = 7;  // the origin changed its limit
  for (int n = 0; n < 3; ++n) waiting();
  EXPECT_EQ(world.dials.size(), 3U) << "what it was is expected again";
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(snapshot().waiting, 0U);
}

TEST_F(ASession, DoesNotRefuseWhomTheCapHasRoomForWhileNothingIsKnown) {
  limits.size = 8;
  limits.max_waiting = 0;
  limits.expected_streams = 0;
  for (int n = 0; n < 8; ++n) waiting();
  EXPECT_EQ(borrower_on().borrow(destination()), State::refused);
}

TEST_F(ASession, IsDialedByEachLoopOfItsOwnWhileTheCapAllowsIt) {
  limits.size = 2;
  on_session(0);
  TestBorrower& far = borrower_on(1);
  ASSERT_EQ(far.borrow(destination()), State::leased) << "served at once by the other loop's";
  EXPECT_EQ(far.lease.home(), 0);
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.opened.back(), OpenCause::loop_local);
  EXPECT_EQ(borrower_on(1).borrow(destination()), State::leased);
  EXPECT_EQ(world.dials.size(), 1U) << "one is under way";
  world.dialed();
  TestBorrower& near = borrower_on(1);
  ASSERT_EQ(near.borrow(destination()), State::leased);
  EXPECT_EQ(near.lease.home(), 1);
}

TEST_F(ASession, IsNotDialedPastTheCapForALoopOfItsOwn) {
  on_session(0);
  EXPECT_EQ(borrower_on(1).borrow(destination()), State::leased);
  EXPECT_TRUE(world.dials.empty());
}

TEST_F(ASession, IsDialedBeforeTheOneBeforeItIsFull) {
  limits.size = 2;
  world.next_streams = 8;
  on_session();
  for (int n = 0; n < 5; ++n) borrower_on().borrow(destination());
  EXPECT_TRUE(world.dials.empty());
  EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
  while (world.dials.empty()) ASSERT_EQ(borrower_on().borrow(destination()), State::leased);
  EXPECT_EQ(world.opened.back(), OpenCause::streams_exhausted);
  world.dialed();
  for (int n = 0; n < 4; ++n) EXPECT_EQ(borrower_on().borrow(destination()), State::leased);
  EXPECT_EQ(world.most, 2U) << "never past the cap";
}

TEST_F(ASession, ThatBreaksBeforeItsFirstRequestFailsWhoWaits) {
  TestBorrower& one = waiting();
  TestBorrower& two = waiting();
  world.next_is_dirty = true;
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::refused);
  EXPECT_EQ(two.state, State::refused);
  EXPECT_TRUE(world.dials.empty()) << "nobody dials for ever";
}

// ---- both kinds under one cap ----

TEST_F(ASession, ThatIsIdleMakesRoomForWhoNeedsAConnectionOfTheOtherKind) {
  idle_connection();
  TestBorrower& socket = waiting(only(ProtocolMask::h1_only));
  world.deliver_all();
  EXPECT_EQ(world.closed, std::vector<CloseCause>{CloseCause::surplus});
  ASSERT_EQ(world.dials.size(), 1U);
  EXPECT_EQ(world.dials.front().reservation->kind(), ProtocolMask::h1_only);
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(socket.state, State::leased);
  EXPECT_FALSE(socket.lease.shared());
  EXPECT_EQ(world.most, 1U);
}

TEST_F(ASession, InUseTakesNobodyNewWhileSomebodyNeedsTheOtherKind) {
  TestBorrower& one = on_session();
  TestBorrower& two = borrower_on();
  two.borrow(destination());
  TestBorrower& socket = waiting(only(ProtocolMask::h1_only));
  two.release();
  EXPECT_EQ(two.borrow(destination()), State::waiting) << "else they would keep the place for ever";
  one.release();
  world.deliver_all();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(socket.state, State::leased);
}

TEST_F(ASession, ServesThoseItWasGivenToThoughItsPlaceIsWanted) {
  TestBorrower& stream = waiting();
  TestBorrower& socket = waiting(only(ProtocolMask::h1_only));
  world.dialed();
  world.deliver_all();
  ASSERT_EQ(stream.state, State::leased) << "else the two would take the place from each other for ever";
  stream.release();
  world.deliver_all();
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(socket.state, State::leased);
}

TEST_F(ASession, DrainsAloneForThoseWhoNeedTheOtherKind) {
  limits.size = 2;
  for (int users = 0; users < 6; ++users) {
    if (borrower_on().borrow(destination()) == State::leased || world.dials.empty()) continue;
    world.dialed();
    world.deliver_all();
  }
  ASSERT_EQ(world.live.size(), 2U);
  waiting(only(ProtocolMask::h1_only));
  EXPECT_EQ(snapshot().of(ConnectionStatus::draining), 1U);
  waiting(only(ProtocolMask::h1_only));
  EXPECT_EQ(snapshot().of(ConnectionStatus::draining), 1U) << "the other one goes on for those who need a stream";
}

TEST_F(ASession, IsWhatAnH1ConnectionMakesRoomFor) {
  world.next_streams = 0;
  TestBorrower& holder = leased();
  world.next_streams = 3;
  TestBorrower& stream = waiting(only(ProtocolMask::h2_only));
  holder.release();
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(stream.state, State::leased);
  EXPECT_TRUE(stream.lease.shared());
}

TEST_F(ASession, IsNotWaitedForWhenTheOriginSpeaksNoHttp2) {
  world.next_streams = 0;
  TestBorrower& stream = waiting(only(ProtocolMask::h2_only));
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(stream.state, State::refused);
  EXPECT_EQ(stream.fault->detail, "the origin does not support HTTP/2");
}

// ---- retries ----

TEST_F(ASession, ServesARetryWhileItIsInUse) {
  on_session();
  BorrowRequest fresh;
  fresh.new_connection_only = true;
  TestBorrower& replay = borrower_on();
  EXPECT_EQ(replay.borrow(destination(), fresh), State::leased) << "it cannot have gone stale at rest";
}

TEST_F(ASession, ThatIsIdleIsReplacedForARetryAndTheNewOneServesAllOfThem) {
  limits.size = 2;
  limits.expected_streams = 3;
  idle_connection();
  rest(milliseconds(1));
  BorrowRequest fresh;
  fresh.new_connection_only = true;
  TestBorrower& one = waiting(fresh);
  TestBorrower& two = waiting(fresh, 1);
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(one.state, State::leased);
  EXPECT_EQ(two.state, State::leased);
}

}  // namespace
}  // namespace carpool::pool
