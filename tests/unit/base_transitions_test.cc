// Unit tests of the tables of state machines.
#include "base/transitions.h"

#include <gtest/gtest.h>

namespace carpool {
namespace {

enum class Light { red, green, yellow, broken };

constexpr Transitions<Light, 4> kLights{
    {Light::red, {Light::green}},
    {Light::green, {Light::yellow}},
    {Light::yellow, {Light::red, Light::yellow}},
};

TEST(TransitionTable, AllowsItsRowsAlone) {
  EXPECT_TRUE(kLights.allows(Light::red, Light::green));
  EXPECT_TRUE(kLights.allows(Light::yellow, Light::red));
  EXPECT_TRUE(kLights.allows(Light::yellow, Light::yellow));
  EXPECT_FALSE(kLights.allows(Light::green, Light::red));
  EXPECT_FALSE(kLights.allows(Light::red, Light::red));
  EXPECT_FALSE(kLights.allows(Light::broken, Light::red));
}

TEST(TransitionTable, EndsInTheStatesThatNoneFollows) {
  EXPECT_TRUE(kLights.ends_in(Light::broken));
  EXPECT_FALSE(kLights.ends_in(Light::yellow));
}

TEST(TransitionTable, FindsAStateThatNothingLeadsTo) {
  EXPECT_FALSE(kLights.all_reachable_from(Light::red));
  constexpr Transitions<Light, 4> kRepaired{
      {Light::red, {Light::green}},
      {Light::green, {Light::yellow}},
      {Light::yellow, {Light::red, Light::broken}},
  };
  EXPECT_TRUE(kRepaired.all_reachable_from(Light::red));
  EXPECT_FALSE(kRepaired.all_reachable_from(Light::broken));
}

TEST(TransitionTable, FindsAStateThatTheEndMayNotFollow) {
  constexpr Transitions<Light, 4> kMayBreak{
      {Light::red, {Light::green, Light::broken}},
      {Light::green, {Light::yellow, Light::broken}},
      {Light::yellow, {Light::red}},
  };
  EXPECT_FALSE(kMayBreak.all_may_end_in(Light::broken));
  EXPECT_TRUE(kMayBreak.all_may_end_in(Light::broken, {Light::yellow}));
  EXPECT_FALSE(kMayBreak.all_may_end_in(Light::yellow, {Light::red, Light::green, Light::broken})) << "it is no end";
}

}  // namespace
}  // namespace carpool
