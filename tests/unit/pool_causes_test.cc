// Unit tests of the causes for which connections are opened and closed.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "pool/destination/snapshot.h"
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

TEST_F(ACause, IsNotPolicyForARequestThatNeedsAnotherProtocol) {
  limits.expected_streams = 0;
  world.next_streams = 4;
  leased().release();
  BorrowRequest upgrade;
  upgrade.kind = ProtocolMask::h1_only;
  upgrade.tunnel = true;
  waiting(upgrade);
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::all_busy}));
}

TEST_F(ACause, IsNotPolicyBesideAConnectionInQuarantine) {
  limits.quarantine = milliseconds(100);
  leased().release();
  waiting();
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::all_busy}));
}

TEST_F(ACause, IsPolicyForARequestThatAcceptsNoSuchIdleTime) {
  leased().release();
  rest(seconds(1));
  BorrowRequest post;
  post.max_idle = milliseconds(100);
  waiting(post);
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::policy}));
}

TEST_F(ACause, OfTheSuccessorNamesTheHealthCheckOrTheNewAddresses) {
  limits.size = 1;
  for (const auto& [closed, opened] : {std::pair(CloseCause::unhealthy, OpenCause::health),
                                       std::pair(CloseCause::dns_changed, OpenCause::dns_changed)}) {
    TestBorrower& held = leased();
    TestBorrower& next = waiting();
    held.discard(closed);
    EXPECT_EQ(world.opened.back(), opened);
    world.dialed();
    world.deliver_all();
    ASSERT_EQ(next.state, State::leased);
    next.release();
  }
}

TEST_F(ACause, CountsTheRequestsThatWaitForTheSize) {
  limits.size = 1;
  TestBorrower& held = leased();
  EXPECT_EQ(snapshot().waited_at_size, 0U) << "it waited for its dial";
  waiting();
  EXPECT_EQ(snapshot().waited_at_size, 1U);
  held.release();
}

TEST_F(ACause, OfReuseNeverIsPolicyAndNotMaxUsage) {
  limits.single_use = true;
  leased().release();
  leased().release();
  EXPECT_EQ(world.closed, (std::vector<CloseCause>{CloseCause::policy, CloseCause::policy}));
  EXPECT_EQ(world.opened, (std::vector<OpenCause>{OpenCause::first, OpenCause::policy}));
}

TEST(AFailure, HasTheReasonOfItsFault) {
  const std::vector<std::pair<FaultKind, FailureReason>> reasons{
      {FaultKind::dns_error, FailureReason::dns},
      {FaultKind::dns_timeout, FailureReason::dns},
      {FaultKind::connect_refused, FailureReason::refused},
      {FaultKind::loop_detected, FailureReason::refused},
      {FaultKind::connect_timeout, FailureReason::timeout},
      {FaultKind::tls_certificate, FailureReason::tls},
      {FaultKind::connection_terminated, FailureReason::reset},
      {FaultKind::budget, FailureReason::budget},
      {FaultKind::response_head_too_large, FailureReason::protocol},
  };
  for (const auto& [kind, reason] : reasons) EXPECT_EQ(reason_of({kind, Side::upstream, ""}), reason);
}

}  // namespace
}  // namespace carpool::pool
