// Unit tests of the plan of a replay: which recorded borrow follows which one.
#include "pool/directory/replay_plan.h"

#include <gtest/gtest.h>

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;

const Instant kPlanStart(std::chrono::hours(1));

BorrowRecord borrow(int arrived, int waited, int held, std::uint16_t caller) {
  return {kPlanStart + milliseconds(arrived), milliseconds(waited), milliseconds(held), caller};
}

TEST(APlanOfAReplay, LetsAPromptClientAskOnceItIsAnswered) {
  const auto plan = plan_replay({borrow(0, 4, 6, 1), borrow(12, 0, 5, 1), borrow(17, 0, 5, 1)});
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].after, ReplayStep::kNone);
  EXPECT_EQ(plan[1].after, 0U);
  EXPECT_EQ(plan[1].gap, milliseconds(2)) << "from the end, which is the wait and the hold after the arrival";
  EXPECT_EQ(plan[2].after, 1U) << "the borrow before, not the first one";
  EXPECT_EQ(plan[2].gap, Duration::zero());
}

TEST(APlanOfAReplay, LinksNoBorrowThatFollowedALongerPause) {
  const auto slow = plan_replay({borrow(0, 0, 5, 1), borrow(9, 0, 5, 1)});
  EXPECT_EQ(slow[1].after, ReplayStep::kNone) << "four milliseconds after its answer";
  const auto early = plan_replay({borrow(0, 0, 5, 1), borrow(4, 0, 5, 1)});
  EXPECT_EQ(early[1].after, ReplayStep::kNone) << "before its answer";
  const auto longest = plan_replay({borrow(0, 0, 5, 1), borrow(8, 0, 5, 1)});
  EXPECT_EQ(longest[1].after, 0U);
}

TEST(APlanOfAReplay, LinksNoBorrowToAnotherOrUnknownClient) {
  const auto others = plan_replay({borrow(0, 0, 5, 1), borrow(5, 0, 5, 2), borrow(6, 0, 5, 1)});
  EXPECT_EQ(others[1].after, ReplayStep::kNone);
  EXPECT_EQ(others[2].after, 0U);
  const auto unknown = plan_replay({borrow(0, 0, 5, 0), borrow(5, 0, 5, 0)});
  EXPECT_EQ(unknown[1].after, ReplayStep::kNone);
}

TEST(APlanOfAReplay, IsInOrderOfArrival) {
  const auto plan = plan_replay({borrow(7, 0, 1, 3), borrow(0, 0, 5, 1), borrow(5, 0, 1, 1)});
  EXPECT_EQ(plan[0].borrow.caller, 1);
  EXPECT_EQ(plan[1].after, 0U);
  EXPECT_EQ(plan[2].borrow.caller, 3);
}

}  // namespace
}  // namespace carpool::pool
