// Unit tests of SessionBudget: which session is closed for a new one.
#include "proxy/net/session_budget.h"

#include <gtest/gtest.h>

#include <array>

namespace carpool::proxy {
namespace {

struct One : BudgetedSession {};

TEST(SessionBudget, GivesUpTheOneThatHasWaitedLongest) {
  std::array<One, 3> all;
  SessionBudget<One> budget(3, 1);
  for (One& one : all) budget.join(one);
  EXPECT_TRUE(budget.full());
  EXPECT_EQ(budget.next_waiting(nullptr), &all.front());
  budget.mark_waiting(all[0]);  // it has received its response
  EXPECT_EQ(budget.next_waiting(nullptr), &all[1]);
  budget.leave(all[1]);
  EXPECT_FALSE(budget.full());
  EXPECT_EQ(budget.next_waiting(nullptr), &all[2]);
}

TEST(SessionBudget, GivesUpNoneThatIsWorkedFor) {
  std::array<One, 3> all;
  SessionBudget<One> budget(3, 2);
  for (One& one : all) budget.join(one);
  budget.mark_working(all[0]);
  budget.mark_working(all[0]);
  EXPECT_TRUE(budget.may_start_work());
  budget.mark_working(all[1]);
  EXPECT_FALSE(budget.may_start_work());
  EXPECT_EQ(budget.next_waiting(nullptr), &all[2]);
  budget.leave(all[1]);
  EXPECT_TRUE(budget.may_start_work());
  budget.mark_waiting(all[0]);
  EXPECT_EQ(budget.next_working(nullptr), nullptr);
  EXPECT_EQ(budget.next_waiting(nullptr), &all[2]);
  EXPECT_EQ(budget.size(), 2U);
}

}  // namespace
}  // namespace carpool::proxy
