// Unit tests of the causes for which connections are opened and closed.
#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class ACause : public test::PoolScene {
 protected:
  ACause() : PoolScene(4) {}
};

TEST_F(ACause, OfASecondLoopsDialIsThatItHasNoSession) {
  limits.expected_streams = 0;
  waiting({}, 0);
  waiting({}, 1);
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::loop_local}));
}

TEST_F(ACause, OfTheSameLoopsDialIsThatAllAreBusy) {
  limits.expected_streams = 0;
  waiting({}, 0);
  waiting({}, 0);
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::all_busy}));
}

TEST_F(ACause, OfReuseNeverIsPolicyAndNotMaxUsage) {
  limits.single_use = true;
  leased().release();
  leased().release();
  EXPECT_EQ(world.closed, (std::vector<CloseCause>{CloseCause::policy, CloseCause::policy}));
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::policy}));
}

}  // namespace
}  // namespace carpool::pool
