// Unit tests of CircuitBreaker, and of a pool whose dials fail all at once.
#include "pool/policy/circuit_breaker.h"

#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::TestBorrower;
using State = TestBorrower::State;

TEST(ACircuitBreaker, PausesNoLongerHoweverManyDialsFailTogether) {
  for (const int failed : {8, 9, 64, 1024}) {
    CircuitBreaker breaker;
    const Instant now{seconds(100)};
    breaker.succeeded(now);
    for (int n = 0; n < failed; ++n) breaker.failed(now);
    EXPECT_EQ(breaker.allowed_dials(0, true, now), 0U);
    EXPECT_EQ(breaker.opens_at(0), now + CircuitBreaker::kRecoveryInterval) << failed;
    EXPECT_EQ(breaker.allowed_dials(0, true, breaker.opens_at(0)), 1U);
  }
}

class AnOriginThatWasThere : public test::PoolScene {
 protected:
  AnOriginThatWasThere() : PoolScene(64) {}
};

TEST_F(AnOriginThatWasThere, IsDialedAgainSoonAfterAllItsDialsFailed) {
  leased().discard(CloseCause::error);
  for (int n = 0; n < 64; ++n) waiting();
  ASSERT_EQ(world.dials.size(), 64U) << "it was there a moment ago";
  while (!world.dials.empty()) world.dial_failed();
  world.deliver_all();
  rest(milliseconds(100));
  TestBorrower& next = waiting();
  ASSERT_EQ(world.dials.size(), 1U);
  world.dialed();
  world.deliver_all();
  EXPECT_EQ(next.state, State::leased);
}

}  // namespace
}  // namespace carpool::pool
