// Unit tests of the shed levels, and of what a kernel reports about memory.
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/thread_cpu.h"
#include "proxy/exchange/accept_budget.h"
#include "proxy/exchange/load_shedding.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/server/overload/heap.h"
#include "proxy/server/overload/memory_reserve.h"
#include "proxy/server/overload/trim_policy.h"
#include "proxy/telemetry/resource_usage.h"
#include "proxy/upstream/origin/retry_budget.h"
#include "tests/unit/failing_memory.h"

namespace carpool::proxy {
namespace {

namespace fs = std::filesystem;

ShedLevel after(std::initializer_list<double> uses, const Watermarks& marks = {}) {
  ShedLevel stage = ShedLevel::nothing;
  for (const double use : uses) stage = next_level(stage, use, marks);
  return stage;
}

TEST(TheShedLevel, RisesWithTheUsage) {
  EXPECT_EQ(after({84.9}), ShedLevel::nothing);
  EXPECT_EQ(after({85}), ShedLevel::keep_alive);
  EXPECT_EQ(after({90}), ShedLevel::new_clients);
  EXPECT_EQ(after({95}), ShedLevel::idle);
  EXPECT_EQ(after({120}), ShedLevel::idle);
}

TEST(TheShedLevel, IsLeftOnlyWellBelowItsMark) {
  EXPECT_EQ(after({95, 93}), ShedLevel::idle);
  EXPECT_EQ(after({95, 91.9}), ShedLevel::new_clients);
  EXPECT_EQ(after({95, 86.9}), ShedLevel::keep_alive);
  EXPECT_EQ(after({95, 81.9}), ShedLevel::nothing);
  EXPECT_EQ(after({85, 84.9, 84.9}), ShedLevel::keep_alive);
}

TEST(TheShedLevel, NeverComesWhereItsMarkIsZero) {
  EXPECT_EQ(after({100}, {0, 0, 0}), ShedLevel::nothing);
  EXPECT_EQ(after({100}, {85, 90, 0}), ShedLevel::new_clients);
  EXPECT_EQ(after({100}, {0, 0, 95}), ShedLevel::idle);
}

TEST(TheAcceptBudget, LeavesTheDescriptorsAboveTheLastThresholdToExistingClients) {
  EXPECT_EQ(AcceptBudget::grant({100, 1000}, {}), 425) << "half of what is left below 95 %";
  EXPECT_EQ(AcceptBudget::grant({948, 1000}, {}), 2) << "as many as there are";
  EXPECT_EQ(AcceptBudget::grant({950, 1000}, {}), 0);
  EXPECT_EQ(AcceptBudget::grant({2000, 1000}, {}), 0);
  EXPECT_EQ(AcceptBudget::grant({960, 1000}, {85, 90, 0}), 5) << "97 % without a mark";
  EXPECT_EQ(AcceptBudget::grant({970, 1000}, {0, 0, 100}), 0);
  EXPECT_GT(AcceptBudget::grant({1000000, 0}, {}), 1000) << "no limit";
}

TEST(TheAcceptBudget, CountsSeldomHoweverFewAreLeft) {
  int counts = 0;
  for (std::uint64_t used = 0; used < 19'000; ++counts) {
    const std::int64_t granted = AcceptBudget::grant({used, 20'000}, {});
    ASSERT_GT(granted, 0);
    used += static_cast<std::uint64_t>(granted);
  }
  EXPECT_LT(counts, 20);
}

// ---- the level that a loop sets before it accepts ----

TEST(TheLevel, FallsWithTheDescriptorsOfClientsThatClosed) {
  OverloadState state;
  state.set(ShedLevel::idle, {}, 0, {100, 100}, {});
  while (state.level() == ShedLevel::idle) ASSERT_TRUE(state.may_accept());
  EXPECT_EQ(state.level(), ShedLevel::nothing);
}

TEST(TheLevel, DoesNotFallBelowThatOfTheMemory) {
  OverloadState state;
  state.set(ShedLevel::idle, {}, 91, {100, 100}, {});
  for (std::uint64_t n = 0; n < 10; ++n) ASSERT_TRUE(state.may_accept());
  EXPECT_EQ(state.level(), ShedLevel::new_clients);
}

TEST(TheLevel, AllowsNoClientOnceTheDescriptorsAreUsed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::ifstream> files;
  for (int n = 0; n < 100; ++n) files.emplace_back("/dev/null");
  const rlimit few{descriptor_use().used + 2, before.rlim_max};
  OverloadState state;
  state.set(ShedLevel::nothing, {}, 0, {100, 100}, {});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const bool accepted = state.may_accept();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(accepted);
  EXPECT_EQ(state.level(), ShedLevel::idle);
}

// ---- the reserve, in processes of its own ----

constexpr int kSlices = 8;

// Allocates until an allocation throws. Returns true if the reserve was used up before.
bool uses_the_reserve_up() {
  memory_reserve::install();
  if (memory_reserve::refill() != kSlices || memory_reserve::kept() == 0) return false;
  rlimit none{};
  ::getrlimit(RLIMIT_AS, &none);
  none.rlim_cur = 1;  // malloc cannot grow from here on
  ::setrlimit(RLIMIT_AS, &none);
  static std::array<void*, 100'000> all;  // no stack can grow from here on
  try {
    for (void*& one : all) one = ::operator new(50'000);
  } catch (const std::bad_alloc&) {
    return memory_reserve::taken() == kSlices && memory_reserve::kept() == 0 && memory_reserve::refill() == 0;
  }
  return false;
}

TEST(TheReserveDeathTest, ServesEachSliceOnceAndThenAllocationsFail) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(uses_the_reserve_up() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(TheReserveDeathTest, EndsTheProgramWithItsExitCodeWhereAFailureMustNotThrow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto failed_searches = [](auto&& fails) noexcept {
    memory_reserve::install();
    fails();
  };
  const auto fails = [&failed_searches] { failed_searches([] { throw std::bad_alloc(); }); };
  EXPECT_EXIT(fails(), ::testing::ExitedWithCode(3), "the reserve is used up");
  const auto throws = [&failed_searches] { failed_searches([] { throw std::runtime_error("another one"); }); };
  EXPECT_EXIT(throws(), ::testing::KilledBySignal(SIGABRT), "");
}

// Measures this many bytes each second; returns after how many seconds memory is returned, or 0.
std::size_t trimmed_after(TrimPolicy& rule, const std::vector<std::uint64_t>& unused, bool memory_is_short = false) {
  Instant now{std::chrono::seconds(1000)};
  for (std::size_t i = 0; i < unused.size(); ++i, now += std::chrono::seconds(1)) {
    if (rule.sample(unused[i], memory_is_short, now)) return i + 1;
  }
  return 0;
}
constexpr std::uint64_t kMiB = 1024 * 1024;
TrimPolicy started(std::uint64_t unused = 0) {
  TrimPolicy rule;
  EXPECT_FALSE(rule.sample(unused, false, Instant{std::chrono::seconds(999)}));
  return rule;
}

TEST(FreeMemory, ThatTheStartLeftStays) {
  TrimPolicy rule = started(20 * kMiB);
  EXPECT_EQ(trimmed_after(rule, std::vector<std::uint64_t>(100, 20 * kMiB)), 0U);
}
TEST(FreeMemory, GoesBackWhenMuchOfItHasLainIdle) {
  TrimPolicy rule = started();
  EXPECT_EQ(trimmed_after(rule, {5 * kMiB, 9 * kMiB, 4 * kMiB, 7 * kMiB}), 4U);
}
TEST(FreeMemory, StaysWhileItIsNeededAgainAndAgain) {
  TrimPolicy rule = started();
  EXPECT_EQ(trimmed_after(rule, {9 * kMiB, 8 * kMiB, kMiB, 9 * kMiB, 7 * kMiB, 2 * kMiB, 9 * kMiB, 5 * kMiB, 0}), 0U);
}
TEST(FreeMemory, GoesBackAtOnceWhileMemoryIsShort) {
  TrimPolicy rule = started();
  EXPECT_EQ(trimmed_after(rule, {3 * kMiB, 5 * kMiB}, true), 2U);
}
TEST(FreeMemory, GoesBackToTheLastBitWhenNothingMoves) {
  TrimPolicy rule = started();
  EXPECT_EQ(trimmed_after(rule, {kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB, 2 * kMiB}), 7U);
  rule.done(kMiB / 2);
  EXPECT_EQ(trimmed_after(rule, std::vector<std::uint64_t>(100, kMiB / 2 + 200 * 1024)), 0U) << "as little as is left";
}
TEST(FreeMemory, IsNotReturnedAgainIfMallocCouldNotReturnIt) {
  TrimPolicy rule = started();
  EXPECT_EQ(trimmed_after(rule, std::vector<std::uint64_t>(10, 30 * kMiB)), 4U);
  rule.done(20 * kMiB);
  EXPECT_EQ(trimmed_after(rule, std::vector<std::uint64_t>(100, 20 * kMiB)), 0U);
  EXPECT_EQ(trimmed_after(rule, std::vector<std::uint64_t>(10, 25 * kMiB)), 4U);
  rule.done(20 * kMiB);
  EXPECT_EQ(trimmed_after(rule, {kMiB, 6 * kMiB, 6 * kMiB, 6 * kMiB, 6 * kMiB}), 5U) << "less is left than before";
}

TEST(FreeMemory, IsSampledOnceASecondUnlessASampleCostsMoreThanAThousandth) {
  using namespace std::chrono_literals;
  EXPECT_EQ(TrimPolicy::pause_after(0s), 1s);
  EXPECT_EQ(TrimPolicy::pause_after(1ms), 1s);
  EXPECT_EQ(TrimPolicy::pause_after(4ms), 4s);
  EXPECT_EQ(TrimPolicy::pause_after(10s), 30s) << "memory is sampled on every machine";
}
TEST(FreeMemory, CostsNoProcessorTimeWhileTheThreadWaits) {
  const Duration before = thread_cpu();
  ASSERT_EQ(::poll(nullptr, 0, 100), 0);
  EXPECT_LT(thread_cpu() - before, std::chrono::milliseconds(50));
}

// Blocks of pages between blocks that remain: what malloc by itself keeps. 15 of the 16 pages of each are free.
TEST(FreeMemory, IsResidentUntilItIsGivenBack) {
  std::vector<std::unique_ptr<char[]>> gone, stays;
  for (int i = 0; i < 500; ++i) {
    gone.push_back(std::make_unique<char[]>(64 * 1024));
    stays.push_back(std::make_unique<char[]>(2048));
  }
  const HeapUse full = heap_use();
  gone.clear();
  const HeapUse freed = heap_use();
  if (freed.used == 0) GTEST_SKIP() << "not glibc's malloc";
  EXPECT_GE(full.used - freed.used, 31 * kMiB);
  EXPECT_GE(freed.unused() - full.unused(), 28 * kMiB);
  give_back_free_pages();
  EXPECT_GE(freed.resident - heap_use().resident, 28 * kMiB);
}

class Memory : public ::testing::Test {
 protected:
  Memory() {
    std::string pattern = fs::temp_directory_path() / "carpool-memory-XXXXXX";
    root_ = mkdtemp(pattern.data());
    write("/proc/self/statm", "5000 1000 500 1 0 500 0");
  }
  ~Memory() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << '\n';
  }
  std::string root_;
  static constexpr std::uint64_t kResident = 1000 * 4096;
};

TEST_F(Memory, HasNoLimitWithoutACgroup) {
  EXPECT_EQ(memory_use(0, root_).limit, 0U);
  EXPECT_EQ(memory_use(0, root_).percent(), 0);
  EXPECT_EQ(memory_use(0, root_).used, kResident);
}

TEST_F(Memory, IsLimitedByTheLeastOfTheGroupsAbove) {
  write("/proc/self/cgroup", "0::/pod/app");
  write("/sys/fs/cgroup/pod/app/memory.max", "max");
  EXPECT_EQ(memory_use(0, root_).limit, 0U);
  write("/sys/fs/cgroup/pod/memory.max", "8192000");
  EXPECT_EQ(memory_use(0, root_).limit, 8192000U);
  EXPECT_NEAR(memory_use(0, root_).percent(), 50, 0.01);
  write("/sys/fs/cgroup/pod/app/memory.max", "4096000");
  EXPECT_EQ(memory_use(0, root_).limit, 4096000U);
}

TEST_F(Memory, CountsTheKernelsSocketBuffersOfTheContainer) {
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/memory.max", "100000000");
  write("/sys/fs/cgroup/memory.stat", "anon 1\nfile 2\nsock 77\n");
  EXPECT_EQ(memory_use(0, root_).used, kResident + 77);
}

TEST_F(Memory, ReadsTheHugeNumberOfVersion1AsNoLimit) {
  write("/proc/self/cgroup", "4:memory:/app");
  write("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(memory_use(0, root_).limit, 0U);
  write("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "268435456");
  EXPECT_EQ(memory_use(0, root_).limit, 268435456U);
}

TEST_F(Memory, TakesTheSmallerOfTheConfiguredLimitAndTheGrantedOne) {
  EXPECT_EQ(memory_use(1000, root_).limit, 1000U);
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/memory.max", "500");
  EXPECT_EQ(memory_use(1000, root_).limit, 500U);
  EXPECT_EQ(memory_use(100, root_).limit, 100U);
}

TEST(Descriptors, AreCounted) {
  const std::uint64_t before = descriptor_use().used;
  const std::ifstream one("/proc/self/status"), two("/proc/self/status");
  EXPECT_EQ(descriptor_use().used, before + 2);
  EXPECT_GE(descriptor_use().limit, before);
}

TEST(TheRetryBudget, StartsWithAPurseAndEarnsItsShare) {
  RetryBudget budget;
  budget.open(20, 10);
  int spent = 0;
  while (budget.withdraw()) ++spent;
  EXPECT_EQ(spent, 20);
  for (int i = 0; i < 9; ++i) budget.deposit();
  EXPECT_FALSE(budget.withdraw());
  budget.deposit();
  EXPECT_TRUE(budget.withdraw());
  EXPECT_FALSE(budget.withdraw());
}

TEST(TheRetryBudget, RefundsTheTokenOfAnAnsweredRetry) {
  RetryBudget budget;
  budget.open(10, 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(budget.withdraw());
    budget.refund(1);
  }
  int spent = 0;
  while (budget.withdraw()) ++spent;
  EXPECT_EQ(spent, 10);
}

TEST(TheRetryBudget, KeepsNoMoreThanAPurse) {
  RetryBudget budget;
  budget.open(10, 50);
  for (int i = 0; i < 1000; ++i) budget.deposit();
  int spent = 0;
  while (budget.withdraw()) ++spent;
  EXPECT_EQ(spent, 10);
}

TEST(TheRetryBudget, HasNoBoundAtAHundredPercent) {
  RetryBudget budget;
  budget.open(1, 100);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(budget.withdraw());
}

TEST(TheRetryBudget, OfZeroPercentEndsWithItsPurse) {
  RetryBudget budget;
  budget.open(1, 0);
  int spent = 0;
  while (budget.withdraw()) ++spent;
  EXPECT_EQ(spent, 10);
  for (int i = 0; i < 1000; ++i) budget.deposit();
  EXPECT_FALSE(budget.withdraw());
}

}  // namespace
}  // namespace carpool::proxy
