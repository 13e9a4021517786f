// Unit tests of when a lease that is held too long is reported.
#include <gtest/gtest.h>

#include "proxy/exchange/leak_detector.h"
#include "proxy/telemetry/leak_record.h"
#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

config::Config with_leak_timeout() {
  config::Config settings;
  settings.pool.leak_timeout = 100ms;
  return settings;
}

class AHeldLease : public test::ExchangeFixture {
 protected:
  AHeldLease() : ExchangeFixture(with_leak_timeout()) {
    exec::assume_on_loop();
    detector_.start();
  }

  LeakDetector detector_{plane_.loop, plane_.exchanges, *plane_.origins, plane_.leaks};
};

TEST_F(AHeldLease, IsReportedAtMostAQuarterOfLeakTimeoutLateThoughNoneWasHeldBefore) {
  plane_.pass(30ms);
  asked();
  for (int steps = 0; steps < 4; ++steps) plane_.pass(25ms);
  EXPECT_TRUE(plane_.leaks.all().empty());
  plane_.pass(25ms);
  ASSERT_EQ(1U, plane_.leaks.all().size());
  EXPECT_EQ(125ms, plane_.leaks.all().front().borrower.held);
}

}  // namespace
}  // namespace carpool::proxy
