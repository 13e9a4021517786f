// Unit tests of StreamLimitLearner: with how many streams the next session begins.
#include "pool/policy/stream_limit_learner.h"

#include <gtest/gtest.h>

namespace carpool::pool {
namespace {

TEST(AStreamLimitLearner, IsToldNothingByASessionThatAllowsNoStreamForAMoment) {
  StreamLimitLearner learner;
  StreamLimitLearner::Session one, two, three;
  EXPECT_EQ(learner.begin(one, 100), 100U);
  learner.changed(one, 5);
  EXPECT_EQ(learner.begin(two, 100), 5U);
  learner.changed(two, 0);
  EXPECT_EQ(learner.begin(three, 100), 5U);
}

}  // namespace
}  // namespace carpool::pool
