// Unit tests of thread eviction and of the number of reserved threads: pure rules.
#include "exec/eviction.h"

#include <gtest/gtest.h>

#include "exec/reserved_threads_size.h"
#include "exec/thread_pool.h"
#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

TEST(Eviction, LetsOneThreadGoPerShareOfTheIdleTimeout) {
  Eviction eviction(60s, 3);
  const Instant start = Instant{} + 1h;
  eviction.grew(start);
  EXPECT_FALSE(eviction.leave(start + 59s, start)) << "not within one idle timeout of growing";
  EXPECT_TRUE(eviction.leave(start + 60s, start));
  EXPECT_FALSE(eviction.leave(start + 79s, start));
  EXPECT_TRUE(eviction.leave(start + 80s, start));
  EXPECT_TRUE(eviction.leave(start + 100s, start));
  EXPECT_FALSE(eviction.leave(start + 101s, start));
}

TEST(Eviction, LetsNoThreadGoThatWasBusyJustNow) {
  Eviction eviction(60s, 100);
  EXPECT_FALSE(eviction.leave(Instant{} + 2h, Instant{} + 2h - 1s));
  EXPECT_EQ(Instant{} + 2h + 59s, eviction.earliest(Instant{} + 2h - 1s));
}

TEST(Eviction, SavesNothingUpInQuietTimes) {
  Eviction eviction(60s, 2);
  const Instant later = Instant{} + 100h;
  const Instant long_ago = Instant{} + 1h;
  int left = 0;
  while (eviction.leave(later, long_ago)) ++left;
  EXPECT_EQ(2, left) << "at most max_evict_count at once, however long nobody left";
}

TEST(Eviction, NeverHappensWithAnIdleTimeoutOfZero) {
  Eviction eviction(Duration::zero(), 5);
  EXPECT_EQ(kNever, eviction.earliest(Instant{}));
  EXPECT_FALSE(eviction.leave(Instant{} + 1h, Instant{}));
}

TEST(ReserveSize, IsWhatWasSaidOrOnePerCoreWithinAnEighth) {
  EXPECT_EQ(0U, reserve_size(0, 64, 200));
  EXPECT_EQ(5U, reserve_size(5, 1, 2));
  EXPECT_EQ(1U, reserve_size(-1, 1, 2));
  EXPECT_EQ(2U, reserve_size(-1, 2, 16));
  EXPECT_EQ(32U, reserve_size(-1, 64, 200));
  EXPECT_EQ(64U, reserve_size(-1, 64, 1000));
  EXPECT_EQ(4U, reserve_size(-1, 3, 64));
}

}  // namespace
}  // namespace carpool::exec
