// Unit tests of EntryWord: its fields, SimplePool's states, and the transitions each operation allows.
#include "pool/core/entry_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace carpool::pool {
namespace {

using std::chrono::seconds;

EntryWord now_of(const AtomicWord& word) {
  return EntryWord(word.load());
}

class EntryState_ : public testing::Test {
 protected:
  void reserve() { ASSERT_TRUE(try_reserve(word)); }
  void make_idle(LoopId home = 0) {
    reserve();
    ASSERT_TRUE(try_enable(word, home, false));
  }
  Change acquire(LoopId loop) {
    EntryWord expected = now_of(word);
    return try_acquire(word, expected, loop);
  }
  AtomicWord word{EntryWord::vacant(7).bits()};
};

TEST(EntryWord, KeepsEveryFieldApart) {
  const EntryWord word = EntryWord()
                             .users(EntryWord::kMaxUsers)
                             .uses(EntryWord::kMaxUses - 1)
                             .generation(EntryWord::kMaxGeneration - 2)
                             .home(201)
                             .with(EntryWord::kInspecting);
  EXPECT_EQ(word.users(), EntryWord::kMaxUsers);
  EXPECT_EQ(word.uses(), EntryWord::kMaxUses - 1);
  EXPECT_EQ(word.generation(), EntryWord::kMaxGeneration - 2);
  EXPECT_EQ(word.home(), 201);
  EXPECT_TRUE(word.inspecting());
  EXPECT_FALSE(word.closed() || word.reserved());
}

TEST(EntryWord, CountsUsesUpToALimitAndNeverWraps) {
  const EntryWord full = EntryWord().uses(EntryWord::kMaxUses);
  EXPECT_EQ(full.used_once_more().uses(), EntryWord::kMaxUses);
  EXPECT_EQ(full.used_once_less().uses(), EntryWord::kMaxUses);
  EXPECT_EQ(EntryWord().used_once_less().uses(), 0U);
}

TEST(EntryWord, GenerationWrapsToOneBecauseZeroNamesNothing) {
  EXPECT_EQ(EntryWord().generation(EntryWord::kMaxGeneration).next_generation().generation(), 1U);
}

TEST(EntryWord, StateIsAFunctionOfWordExpiryAndNow) {
  const Instant now = Instant(seconds(100));
  const Instant later = now + seconds(1);
  EXPECT_EQ(state(EntryWord().with(EntryWord::kReserved), now, now), EntryState::connecting);
  EXPECT_EQ(state(EntryWord::vacant(1), later, now), EntryState::closed);
  EXPECT_EQ(state(EntryWord(), later, now), EntryState::not_borrowed_valid);
  EXPECT_EQ(state(EntryWord(), now, now), EntryState::not_borrowed_expired);
  EXPECT_EQ(state(EntryWord().users(1), later, now), EntryState::borrowed_valid);
  EXPECT_EQ(state(EntryWord().users(1), now, now), EntryState::borrowed_expired);
}

TEST_F(EntryState_, AVacantPlaceIsReservedOnce) {
  EXPECT_TRUE(try_reserve(word));
  EXPECT_FALSE(try_reserve(word));
  EXPECT_EQ(now_of(word).generation(), 7U);
}

TEST_F(EntryState_, EnablingNeedsAReservationAndHappensOnce) {
  EXPECT_FALSE(try_enable(word, 0, false));
  reserve();
  EXPECT_TRUE(try_enable(word, 3, false));
  EXPECT_TRUE(now_of(word).idle());
  EXPECT_EQ(now_of(word).home(), 3);
  EXPECT_FALSE(try_enable(word, 3, false));
}

TEST_F(EntryState_, EnablingAcquiredLeavesNoMomentForAThief) {
  reserve();
  ASSERT_TRUE(try_enable(word, 0, true));
  EXPECT_EQ(now_of(word).users(), 1U);
  EXPECT_EQ(now_of(word).uses(), 1U);
}

TEST_F(EntryState_, AcquiringCountsUserAndUseInOneStepAndKeepsTheGenerationAtHome) {
  make_idle(2);
  const Change change = acquire(2);
  ASSERT_TRUE(change);
  EXPECT_EQ(change.after.users(), 1U);
  EXPECT_EQ(change.after.uses(), 1U);
  EXPECT_EQ(change.after.generation(), 7U);
}

TEST_F(EntryState_, TakingOverFromAnotherLoopMovesHomeAndChangesTheGeneration) {
  make_idle(2);
  const Change change = acquire(5);
  ASSERT_TRUE(change);
  EXPECT_EQ(change.before.home(), 2);
  EXPECT_EQ(change.after.home(), 5);
  EXPECT_EQ(change.after.generation(), 8U);
}

TEST_F(EntryState_, ALostRaceTellsWhatStandsThereNow) {
  make_idle(0);
  EntryWord expected = now_of(word);
  ASSERT_TRUE(acquire(0));
  EXPECT_FALSE(try_acquire(word, expected, 0));
  EXPECT_EQ(expected, now_of(word));
}

TEST_F(EntryState_, ADoubleReleaseIsRefused) {
  make_idle();
  EXPECT_FALSE(try_release(word));
  ASSERT_TRUE(acquire(0));
  EXPECT_TRUE(try_release(word));
  EXPECT_FALSE(try_release(word));
}

TEST_F(EntryState_, WhatWasGivenBackUnusedCountsNoUse) {
  make_idle();
  ASSERT_TRUE(acquire(0));
  ASSERT_TRUE(try_release(word, Use::unserved));
  EXPECT_EQ(now_of(word).uses(), 0U);
}

TEST_F(EntryState_, HandingOnKeepsTheUserAndCountsAUse) {
  make_idle(1);
  ASSERT_TRUE(acquire(1));
  const Change change = try_hand_off(word, 4);
  ASSERT_TRUE(change);
  EXPECT_EQ(change.after.users(), 1U);
  EXPECT_EQ(change.after.uses(), 2U);
  EXPECT_EQ(change.after.home(), 4);
  EXPECT_EQ(change.after.generation(), 8U);
}

TEST_F(EntryState_, ClosingAReservationEmptiesThePlace) {
  reserve();
  const Change change = try_close(word);
  ASSERT_TRUE(change);
  EXPECT_TRUE(change.after.vacant());
  EXPECT_EQ(change.after.generation(), 8U);
  EXPECT_FALSE(try_close(word));
}

TEST_F(EntryState_, OnlyTheLastOfSeveralUsersEndsIt) {
  make_idle();
  EntryWord expected = now_of(word);
  ASSERT_TRUE(try_acquire(word, expected, 0));
  expected = now_of(word);
  ASSERT_TRUE(try_acquire(word, expected, 0));
  EXPECT_FALSE(try_close(word).after.vacant());
  EXPECT_FALSE(try_release(word)) << "closed for all: whoever is done closes it";
  EXPECT_TRUE(try_close(word).after.vacant());
}

TEST_F(EntryState_, AnIdleEntryClosesOnlyAsItWasSeen) {
  make_idle();
  const EntryWord seen = now_of(word);
  ASSERT_TRUE(acquire(0));
  ASSERT_TRUE(try_release(word));
  EXPECT_FALSE(try_close_idle(word, seen)) << "it served meanwhile: the judgement is void";
  EXPECT_TRUE(try_close_idle(word, now_of(word)));
  EXPECT_TRUE(now_of(word).vacant());
}

TEST_F(EntryState_, NobodyClosesWhatIsNotTheirs) {
  make_idle();
  EXPECT_FALSE(try_close(word)) << "idle: try_close_idle decides who wins it";
  ASSERT_TRUE(acquire(0));
  EXPECT_FALSE(try_close_idle(word, now_of(word)));
}

TEST_F(EntryState_, InspectionExcludesBorrowersAndNeedsTheRightName) {
  make_idle(1);
  EXPECT_FALSE(try_inspect(word, 6, 1)) << "an older generation";
  EXPECT_FALSE(try_inspect(word, 7, 2)) << "another loop";
  ASSERT_TRUE(try_inspect(word, 7, 1));
  EXPECT_FALSE(now_of(word).lendable(1));
  EXPECT_FALSE(try_close_idle(word, now_of(word)));
  EXPECT_FALSE(try_close(word));
  EXPECT_TRUE(end_inspect(word, InspectionEnd::idle));
  EXPECT_TRUE(now_of(word).idle());
}

TEST_F(EntryState_, AnInspectionThatFoundSomethingEmptiesThePlace) {
  make_idle(1);
  ASSERT_TRUE(try_inspect(word, 7, 1));
  const Change change = end_inspect(word, InspectionEnd::closed);
  ASSERT_TRUE(change);
  EXPECT_TRUE(change.after.vacant());
  EXPECT_EQ(change.after.generation(), 8U);
}

TEST_F(EntryState_, TerminatingLeavesWhatIsInUseToItsUser) {
  make_idle();
  ASSERT_TRUE(acquire(0));
  const Change change = try_terminate(word);
  ASSERT_TRUE(change);
  EXPECT_FALSE(change.after.vacant());
  EXPECT_FALSE(try_release(word));
  EXPECT_TRUE(try_close(word).after.vacant());
}

TEST_F(EntryState_, TerminatingUnderAnInspectionLeavesTheEndToTheInspector) {
  make_idle();
  ASSERT_TRUE(try_inspect(word, 7, 0));
  EXPECT_FALSE(try_terminate(word).after.vacant());
  const Change change = end_inspect(word, InspectionEnd::idle);
  EXPECT_TRUE(change.after.vacant());
  EXPECT_EQ(change.after.generation(), 8U) << "an event of the old object finds nothing";
}

}  // namespace
}  // namespace carpool::pool
