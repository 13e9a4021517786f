// Regression tests of the core: bugs of other pools, each as a test that would fail here.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "pool/core/pool.h"

namespace carpool::pool {
namespace {

constexpr auto kAnyEntry = [](const auto&, EntryWord) { return Match::take; };

// J#5731 J#6135: division by zero and indices out of bounds, on a pool that is empty or becomes empty during the
// search.
TEST(PoolCoreRegression, ASearchOfAnEmptyPoolFindsNothing) {
  Pool<int> pool(4, 2);
  EXPECT_EQ(pool.acquire(0, true, kAnyEntry).entry, nullptr);
  Entry<int>& entry = *pool.reserve();
  pool.enable(entry, 1, false);
  ASSERT_TRUE(pool.close_idle(entry, EntryWord(entry.word.load())));
  pool.vacate(entry);
  EXPECT_EQ(pool.acquire(0, true, kAnyEntry).entry, nullptr);
  EXPECT_EQ(pool.acquire(1, true, kAnyEntry).entry, nullptr);
}

// J#7107: a multiplexed connection is closed under its other users. J#6285: its double release is two releases.
TEST(PoolCoreRegression, AMultiplexedEntryEndsWithItsLastUser) {
  Pool<int> pool(1, 1, 3);
  Entry<int>& entry = *pool.reserve();
  pool.enable(entry, 0, false);
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
  EXPECT_FALSE(pool.close(entry));
  EXPECT_FALSE(pool.release(entry)) << "closed: who is done closes it";
  EXPECT_FALSE(pool.close(entry));
  EXPECT_TRUE(pool.close(entry)) << "the last one ends it";
  EXPECT_FALSE(pool.close(entry)) << "once";
}

TEST(PoolCoreRegression, ASecondReleaseFails) {
  Pool<int> pool(1, 1);
  Entry<int>& entry = *pool.reserve();
  pool.enable(entry, 0, true);
  EXPECT_TRUE(pool.release(entry));
  EXPECT_FALSE(pool.release(entry));
  EXPECT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
  EXPECT_EQ(pool.acquire(0, true, kAnyEntry).entry, nullptr);
}

// L-B7 L#279 J#2672 J#3491: one connection accepts any number of users.
TEST(PoolCoreRegression, NoMoreStreamsAreLentThanTheConnectionAllows) {
  Pool<int> pool(1, 1, 2);
  Entry<int>& entry = *pool.reserve();
  pool.enable(entry, 0, false);
  EXPECT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
  EXPECT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
  EXPECT_EQ(pool.acquire(0, true, kAnyEntry).entry, nullptr);
  EXPECT_TRUE(pool.release(entry));
  EXPECT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
}

// J#8678 J#5310: after GOAWAY the connection is still acquired; or its users are cut off.
TEST(PoolCoreRegression, ATerminatedEntryIsNotLentAgainAndKeepsItsUsers) {
  Pool<int> pool(1, 1, 2);
  Entry<int>& entry = *pool.reserve();
  pool.enable(entry, 0, false);
  ASSERT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
  ASSERT_TRUE(try_terminate(entry.word));
  EXPECT_EQ(pool.acquire(0, true, kAnyEntry).entry, nullptr);
  EXPECT_TRUE(EntryWord(entry.word.load()).borrowed());
  EXPECT_TRUE(pool.close(entry));
}

// J#503: sending on a stream failed, and the stream counts as used forever.
TEST(PoolCoreRegression, AStreamWhoseSendFailedIsReturned) {
  Pool<int> pool(1, 1, 2);
  Entry<int>& entry = *pool.reserve();
  pool.enable(entry, 0, false);
  for (int n = 0; n < 10; ++n) {
    ASSERT_TRUE(pool.acquire(0, true, kAnyEntry).taken);
    ASSERT_TRUE(pool.acquire(0, true, kAnyEntry).taken) << "after " << n;
    EXPECT_TRUE(pool.release(entry, Use::unserved));
    EXPECT_TRUE(pool.release(entry, Use::served));
  }
  EXPECT_EQ(EntryWord(entry.word.load()).uses(), 10U) << "and a failed one is no use";
}

// J#12289: a walk over the entries reads an index that no longer exists, because others close and open meanwhile.
TEST(PoolCoreRegression, AWalkOverEntriesThatComeAndGoIsSafe) {
  Pool<int> pool(200, 2);
  std::atomic<bool> done{false};
  std::thread walker([&] {
    std::uint64_t idle = 0;
    while (!done.load()) {
      pool.for_each_idle([&](Entry<int>& entry) { idle += EntryWord(entry.word.load()).idle() ? 1 : 0; });
      pool.for_each([](Entry<int>&) {});
      static_cast<void>(pool.acquire(1, true, [](const auto&, EntryWord) { return Match::skip; }));
    }
  });
  for (int round = 0; round < 20; ++round) {
    std::vector<Entry<int>*> all;
    while (Entry<int>* entry = pool.reserve()) {
      pool.enable(*entry, 0, false);
      all.push_back(entry);
    }
    EXPECT_EQ(all.size(), 200U);
    for (Entry<int>* entry : all) {
      ASSERT_TRUE(pool.close_idle(*entry, EntryWord(entry->word.load())));
      pool.vacate(*entry);
    }
  }
  done = true;
  walker.join();
  EXPECT_EQ(pool.in_use(), 0U);
}

// J#5741: the use count overflows, and the connection is used up, or never.
TEST(PoolCoreRegression, TheCountOfUsesSaturates) {
  AtomicWord word{EntryWord{}.generation(1).uses(EntryWord::kMaxUses).bits()};
  EntryWord seen(word.load());
  ASSERT_TRUE(try_acquire(word, seen, 0));
  EXPECT_EQ(EntryWord(word.load()).uses(), EntryWord::kMaxUses);
  EXPECT_EQ(EntryWord(word.load()).users(), 1U);
}

// J#2388: a compare-and-set that does not compare.
TEST(PoolCoreRegression, AnAcquireFromAnOldStateFails) {
  AtomicWord word{EntryWord{}.generation(1).bits()};
  EntryWord first(word.load());
  EntryWord second = first;
  EXPECT_TRUE(try_acquire(word, first, 0));
  EXPECT_FALSE(try_acquire(word, second, 0));
  EXPECT_EQ(second.users(), 1U) << "and tells what stands there";
}

}  // namespace
}  // namespace carpool::pool
