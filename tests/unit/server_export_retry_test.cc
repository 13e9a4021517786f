// Unit tests of the retries of an export.
#include "proxy/server/otlp/export_retry.h"

#include <gtest/gtest.h>

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

TEST(AnExportRetry, DoublesItsPausesAndGivesUp) {
  ExportRetry retry(1);
  Duration most = 1s;
  for (std::uint32_t attempt = 1; attempt < ExportRetry::kMaxAttempts; ++attempt, most *= 2) {
    const auto pause = retry.after_failure({});
    ASSERT_TRUE(pause);
    EXPECT_LE(*pause, most);
    EXPECT_GE(*pause, most * 3 / 4);
  }
  EXPECT_FALSE(retry.after_failure({}));
  retry.begin();
  EXPECT_TRUE(retry.after_failure({}));
}

TEST(AnExportRetry, ObeysRetryAfterWithinBounds) {
  ExportRetry retry(1);
  EXPECT_EQ(Duration(7s), retry.after_failure(7s));
  EXPECT_EQ(ExportRetry::kMaxPause, retry.after_failure(24h));
  EXPECT_EQ(ExportRetry::kFirstPause, retry.after_failure(0s));
}

}  // namespace
}  // namespace carpool::proxy
