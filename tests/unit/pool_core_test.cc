// Unit tests of Pool<T>: its guarantees one by one, under threads, and against LockedPool.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pool/core/pool.h"
#include "tests/unit/locked_pool.h"

namespace carpool::pool {
namespace {

constexpr auto kAny = [](const auto&, EntryWord) { return Match::take; };
using Ints = Pool<int>;

std::string audited(const Ints& pool) {
  AuditReport report;
  pool.audit(report);
  return report.text();
}

Entry<int>* take(Ints& pool, LoopId loop) {
  return pool.acquire(loop, true, kAny).entry;
}

Entry<int>& add(Ints& pool, LoopId home) {
  Entry<int>* entry = pool.reserve();
  EXPECT_NE(entry, nullptr);
  EXPECT_TRUE(pool.enable(*entry, home, false));
  return *entry;
}

TEST(Pool, CountsAReservationAgainstTheCapAtOnce) {
  Ints pool(1, 1);
  Entry<int>* entry = pool.reserve();
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(pool.reserve(), nullptr);
  EXPECT_TRUE(pool.close(*entry));
  EXPECT_EQ(pool.reserve(), nullptr) << "the object is not gone yet";
  pool.vacate(*entry);
  EXPECT_NE(pool.reserve(), nullptr);
}

TEST(Pool, GrowsBeyondOneBlock) {
  Ints pool(200, 1);
  for (int n = 0; n < 200; ++n) add(pool, 0);
  EXPECT_EQ(pool.reserve(), nullptr);
  for (int n = 0; n < 200; ++n) EXPECT_NE(take(pool, 0), nullptr);
  EXPECT_EQ(take(pool, 0), nullptr);
}

TEST(Pool, LendsTheLowestFreePlaceOfManyBlocksAndFindsTheOnlyOne) {
  Ints pool(300, 2);
  std::vector<Entry<int>*> all;
  all.reserve(300);
  for (int n = 0; n < 300; ++n) all.push_back(&add(pool, n % 2 == 0 ? 0 : 1));
  const auto search = [&pool] { return pool.acquire(0, false, kAny).entry; };
  for (int n = 0; n < 300; ++n) EXPECT_NE(search(), nullptr);  // all of them; each is loop 0's now
  EXPECT_EQ(search(), nullptr);
  for (std::size_t only = 0; only < all.size(); only += 23) {
    EXPECT_TRUE(pool.release(*all[only]));
    EXPECT_EQ(search(), all[only]) << only;
  }
  for (const std::size_t free : {299U, 64U, 130U}) EXPECT_TRUE(pool.release(*all[free]));
  for (const std::size_t lowest : {64U, 130U, 299U}) EXPECT_EQ(search(), all[lowest]);
}

// Otherwise each search would read the word of every borrowed entry.
TEST(Pool, ASearchInVainLeavesNothingListedAndWhatComesBackIsListedAgain) {
  for (const Strategy strategy : {Strategy::first, Strategy::thread_id, Strategy::random, Strategy::round_robin}) {
    Ints pool(100, 3);
    for (int n = 0; n < 100; ++n) add(pool, static_cast<LoopId>(n % 3));
    const auto listed = [&pool] {
      int count = 0;
      pool.for_each_idle([&count](const Entry<int>&) { ++count; });
      return count;
    };
    std::vector<Entry<int>*> lent;
    lent.reserve(100);
    for (int n = 0; n < 100; ++n) {
      lent.push_back(pool.acquire({static_cast<LoopId>(n % 2), true, strategy}, kAny).entry);
      ASSERT_NE(lent.back(), nullptr);
    }
    EXPECT_EQ(pool.acquire({0, true, strategy}, kAny).entry, nullptr);
    EXPECT_EQ(listed(), 0);
    EXPECT_TRUE(pool.release(*lent[50]));
    EXPECT_EQ(listed(), 1);
    EXPECT_EQ(pool.acquire({2, true, strategy}, kAny).entry, lent[50]);
  }
}

TEST(Pool, PrefersItsOwnLoopsEntries) {
  Ints pool(3, 3);
  add(pool, 0);
  Entry<int>& own = add(pool, 1);
  add(pool, 2);
  EXPECT_EQ(take(pool, 1), &own);
}

TEST(Pool, TakesAnotherLoopsFreeEntryOver) {
  Ints pool(1, 2);
  Entry<int>& entry = add(pool, 0);
  const std::uint32_t before = EntryWord(entry.word.load()).generation();
  EXPECT_EQ(take(pool, 1), &entry);
  EXPECT_EQ(EntryWord(entry.word.load()).home(), 1);
  EXPECT_EQ(EntryWord(entry.word.load()).generation(), before + 1);
}

TEST(Pool, TheLastReleasedEntryIsTheFirstLent) {
  Ints pool(3, 1);
  add(pool, 0);
  Entry<int>& second = add(pool, 0);
  Entry<int>* first = take(pool, 0);
  ASSERT_EQ(take(pool, 0), &second);
  EXPECT_TRUE(pool.release(*first));
  EXPECT_TRUE(pool.release(second));
  EXPECT_EQ(take(pool, 0), &second);
}

TEST(Pool, SkipsWhatTheJudgeRefusesAndStopsAtWhatIsDoomed) {
  Ints pool(2, 1);
  add(pool, 0).value = 1;
  add(pool, 0).value = 2;
  const auto found = pool.acquire(
      0, true, [](const Entry<int>& entry, EntryWord) { return entry.value == 1 ? Match::skip : Match::evict; });
  ASSERT_NE(found.entry, nullptr);
  EXPECT_FALSE(found.taken);
  EXPECT_EQ(found.entry->value, 2);
  EXPECT_TRUE(pool.close_idle(*found.entry, found.before));
}

TEST(Pool, LendsASharedEntryUpToItsMultiplexToAnyLoopAndLeavesItAtHome) {
  Ints pool(1, 2, 3);
  Entry<int>& entry = add(pool, 0);
  EXPECT_EQ(take(pool, 0), &entry);
  EXPECT_EQ(take(pool, 1), &entry);
  EXPECT_EQ(EntryWord(entry.word.load()).home(), 0);
  EXPECT_EQ(take(pool, 0), &entry);
  EXPECT_EQ(take(pool, 0), nullptr);
  EXPECT_EQ(take(pool, 1), nullptr);
  EXPECT_TRUE(pool.release(entry));
  EXPECT_EQ(take(pool, 1), &entry);
}

TEST(Pool, FollowsALiveChangeOfTheMultiplexOfAnEntry) {
  Ints pool(1, 1, 2);
  Entry<int>& entry = add(pool, 0);
  EXPECT_EQ(take(pool, 0), &entry);
  EXPECT_EQ(take(pool, 0), &entry);
  EXPECT_EQ(take(pool, 0), nullptr);
  pool.share(entry, 3);
  EXPECT_EQ(take(pool, 0), &entry);
  pool.share(entry, 1);
  EXPECT_TRUE(pool.release(entry));
  EXPECT_TRUE(pool.release(entry));
  EXPECT_EQ(take(pool, 0), nullptr) << "one uses it, one may";
  EXPECT_TRUE(pool.release(entry));
  EXPECT_EQ(take(pool, 0), &entry);
  EXPECT_TRUE(pool.release(entry));
  pool.share(entry, 0);
  EXPECT_EQ(take(pool, 0), nullptr) << "nobody new";
}

TEST(Pool, AShrunkenCapRefusesUntilUseFell) {
  Ints pool(4, 1);
  Entry<int>& one = add(pool, 0);
  Entry<int>& two = add(pool, 0);
  pool.cap(1);
  EXPECT_EQ(pool.reserve(), nullptr);
  for (Entry<int>* entry : {&one, &two}) {
    EXPECT_TRUE(pool.close_idle(*entry, EntryWord(entry->word.load())));
    pool.vacate(*entry);
  }
  EXPECT_NE(pool.reserve(), nullptr);
}

TEST(Pool, AfterTerminateNothingIsLentReservedOrEnabled) {
  Ints pool(3, 1);
  Entry<int>& used = add(pool, 0);
  ASSERT_EQ(take(pool, 0), &used);
  Entry<int>& idle = add(pool, 0);
  Entry<int>* reserved = pool.reserve();
  std::vector<Entry<int>*> ended;
  pool.terminate([&](Entry<int>& entry) { ended.push_back(&entry); });
  EXPECT_EQ(ended, std::vector<Entry<int>*>{&idle});
  EXPECT_EQ(take(pool, 0), nullptr);
  EXPECT_EQ(pool.reserve(), nullptr);
  EXPECT_FALSE(pool.enable(*reserved, 0, true));
  EXPECT_FALSE(pool.release(used));
  EXPECT_TRUE(pool.close(used));
  pool.terminate([&](Entry<int>&) { ADD_FAILURE() << "once is enough"; });
}

TEST(EntryIndex, FindsAnEntryUntilItsPoolIsGoneAndReusesNumbersWithNewerGenerations) {
  std::uint32_t index = 0, generation = 0;
  {
    Ints pool(1, 1, 1, &EntryIndex::process());
    Entry<int>* entry = pool.reserve();
    index = entry->index;
    EXPECT_EQ(EntryIndex::process().find(index), entry);
    for (int n = 0; n < 5; ++n) {
      EXPECT_TRUE(pool.close(*entry));
      pool.vacate(*entry);
      ASSERT_EQ(pool.reserve(), entry);
    }
    generation = EntryWord(entry->word.load()).generation();
  }
  EXPECT_EQ(EntryIndex::process().find(index), nullptr);
  Ints next(1, 1, 1, &EntryIndex::process());
  Entry<int>* entry = next.reserve();
  ASSERT_EQ(entry->index, index);
  EXPECT_GT(EntryWord(entry->word.load()).generation(), generation);
  EXPECT_EQ(EntryIndex::process().find(0xFFFFFFFFU), nullptr);
}

TEST(Pool, NeverPassesItsCapWithEightThreadsAtIt) {
  constexpr std::uint32_t kCap = 5;
  Ints pool(kCap, 8);
  std::atomic<std::uint32_t> alive{0};
  std::atomic<bool> passed{false};
  std::vector<std::thread> threads;
  for (unsigned loop = 0; loop < 8; ++loop) {
    threads.emplace_back([&, loop] {
      for (int n = 0; n < 20000; ++n) {
        Entry<int>* entry = pool.reserve();
        if (entry == nullptr) continue;
        if (alive.fetch_add(1) + 1 > kCap) passed = true;
        if (n % 2 == 0) {
          EXPECT_TRUE(pool.enable(*entry, static_cast<LoopId>(loop), true));
        }
        alive.fetch_sub(1);
        EXPECT_TRUE(pool.close(*entry));
        pool.vacate(*entry);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(passed);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(audited(pool), "");
}

TEST(Pool, LendsAnEntryToOneThreadAtATimeAndLosesNone) {
  constexpr unsigned kThreads = 4;
  constexpr int kEntries = 3;
  Ints pool(kEntries, kThreads);
  for (int n = 0; n < kEntries; ++n) add(pool, 0);
  std::vector<std::thread> threads;
  for (unsigned loop = 0; loop < kThreads; ++loop) {
    threads.emplace_back([&, loop] {
      for (int n = 0; n < 20000; ++n) {
        Entry<int>* entry = take(pool, static_cast<LoopId>(loop));
        if (entry == nullptr) continue;
        ++entry->value;  // plain: a second user would be a race
        EXPECT_TRUE(pool.release(*entry));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(audited(pool), "");
  for (int n = 0; n < kEntries; ++n) EXPECT_NE(take(pool, 0), nullptr) << "an idle entry was lost";
}

// One seed, one history of calls, made on both pools: every result must be the same.
class Twins {
 public:
  explicit Twins(std::uint64_t seed)
      : random_(seed),
        multiplex_(pick(3) == 0 ? 3 : 1),
        cap_(1 + pick(6)),
        pool_(cap_, kLoops, multiplex_),
        locked_(cap_, multiplex_) {}

  void run() {
    for (int n = 0; n < 400 && !testing::Test::HasFailure(); ++n) {
      step();
      EXPECT_EQ(pool_.in_use(), locked_.in_use());
      EXPECT_EQ(pool_.has_idle(), locked_.has_idle());
      if (n % 16 != 0) continue;
      EXPECT_EQ(audited(pool_), "");
    }
  }

 private:
  static constexpr unsigned kLoops = 3;
  using Free = Entry<int>;
  using Locked = LockedPool<int>::Slot;

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  LoopId any_loop() { return static_cast<LoopId>(pick(kLoops)); }

  void step() {
    switch (pick(20)) {
      case 0:
        return terminate_rarely();
      case 1:
      case 2:
      case 3:
        return reserve();
      case 4:
      case 5:
      case 6:
        return enable();
      case 7:
        return pick(2) == 0 ? close_reserved() : share();
      case 8:
      case 9:
        return close_used();
      case 10:
      case 11:
      case 12:
      case 13:
        return release();
      default:
        return acquire();
    }
  }
  void reserve() {
    Free* a = pool_.reserve();
    Locked* b = locked_.reserve();
    ASSERT_EQ(a == nullptr, b == nullptr);
    if (a == nullptr) return;
    twin_[a] = b;
    reserved_.push_back(a);
  }
  void enable() {
    if (reserved_.empty()) return;
    Free* a = pop(reserved_);
    const LoopId home = any_loop();
    const bool acquired = pick(2) == 0;
    const bool ok = pool_.enable(*a, home, acquired);
    ASSERT_EQ(ok, locked_.enable(*twin_[a], home, acquired));
    if (!ok) return vacate(a);
    if (acquired) users_.push_back(a);
  }
  void acquire() {
    const LoopId loop = any_loop();
    Free* a = pool_.acquire(loop, true, kAny).entry;
    // LockedPool must have an entry as well; which one is the lock-free pool's choice.
    if (a == nullptr) {
      ASSERT_EQ(locked_.acquire(loop), nullptr);
      return;
    }
    Locked* b = twin_[a];
    ASSERT_EQ(b->state, LockedPool<int>::State::enabled);
    ASSERT_LT(b->users, b->most);
    ASSERT_TRUE(b->users == 0 || b->shared);
    ++b->users;
    if (!b->shared) b->home = loop;
    ASSERT_EQ(EntryWord(a->word.load()).home(), b->home);
    ASSERT_EQ(EntryWord(a->word.load()).users(), b->users);
    users_.push_back(a);
  }
  void share() {
    if (users_.empty() || multiplex_ == 1) return;
    Free* a = users_[pick(static_cast<std::uint32_t>(users_.size()))];
    const std::uint32_t most = pick(5);
    pool_.share(*a, most);
    locked_.share(*twin_[a], most);
  }
  void release() {
    if (users_.empty()) return;
    Free* a = pop(users_);
    const bool ok = pool_.release(*a);
    ASSERT_EQ(ok, locked_.release(*twin_[a]));
    if (!ok) close(a);
  }
  void close_used() {
    if (!users_.empty()) close(pop(users_));
  }
  void close_reserved() {
    if (reserved_.empty()) return;
    Free* a = pop(reserved_);
    const bool last = pool_.close(*a);
    ASSERT_EQ(last, locked_.close(*twin_[a]));
    vacate(a);
  }
  void close(Free* a) {
    const bool last = pool_.close(*a);
    ASSERT_EQ(last, locked_.close(*twin_[a]));
    if (last) vacate(a);
  }
  void vacate(Free* a) {
    locked_.vacate(*twin_[a]);
    pool_.vacate(*a);
  }
  void terminate_rarely() {
    if (pick(10) != 0) return;
    std::size_t a = 0, b = 0;
    pool_.terminate([&](Free& entry) {
      pool_.vacate(entry);
      ++a;
    });
    locked_.terminate([&](Locked& slot) {
      locked_.vacate(slot);
      ++b;
    });
    ASSERT_EQ(a, b);
  }
  Free* pop(std::vector<Free*>& from) {
    std::swap(from[pick(static_cast<std::uint32_t>(from.size()))], from.back());
    Free* last = from.back();
    from.pop_back();
    return last;
  }

  std::mt19937_64 random_;
  const std::uint32_t multiplex_, cap_;
  Ints pool_;
  LockedPool<int> locked_;
  std::map<Free*, Locked*> twin_;
  std::vector<Free*> reserved_, users_;
};

// An idle entry that accepts no user is found by a search for an entry to close, and by no other search.
TEST(Pool, ShowsWhatIsIdleAndTakesNobodyToWhoEndsIt) {
  Pool<int> pool(1, 1);
  Entry<int>& entry = *pool.reserve();
  ASSERT_TRUE(pool.enable(entry, 0, false, Multiplexing{0, true}));
  int seen = 0;
  const auto judge = [&](const Entry<int>&, EntryWord) { return ++seen, Match::skip; };
  for (const Strategy strategy : {Strategy::first, Strategy::thread_id, Strategy::random, Strategy::round_robin}) {
    seen = 0;
    static_cast<void>(pool.acquire(SearchHint{0, false, strategy}, judge));
    EXPECT_EQ(seen, 0);
    static_cast<void>(pool.acquire(SearchHint{0, false, strategy, 0, true}, judge));
    EXPECT_GE(seen, 1);
  }
}

// With so many blocks that their map has more than one word: every strategy finds each idle entry once, wherever it is;
// and a slot that was freed is the next one that is reserved.
TEST(Pool, FindsWhatIsFreeInAnyOfManyBlocks) {
  constexpr std::uint32_t kPlaces = 150 * kBlockEntries;
  Pool<int> pool(kPlaces, 2);
  std::vector<Entry<int>*> all;
  for (std::uint32_t n = 0; n < kPlaces; ++n) {
    all.push_back(pool.reserve());
    ASSERT_TRUE(pool.enable(*all.back(), static_cast<LoopId>(n % 2), true));
  }
  ASSERT_EQ(pool.blocks(), 150U);
  const auto any = [](const Entry<int>&, EntryWord) { return Match::take; };
  std::mt19937 random(7);
  for (const Strategy strategy : {Strategy::first, Strategy::thread_id, Strategy::random, Strategy::round_robin}) {
    for (int round = 0; round < 50; ++round) {
      std::set<Entry<int>*> free;
      for (int n = 0; n < 20; ++n) free.insert(all[random() % kPlaces]);
      for (Entry<int>* entry : free) ASSERT_TRUE(pool.release(*entry));
      while (!free.empty()) {
        const auto found = pool.acquire(SearchHint{0, false, strategy, static_cast<std::uint32_t>(random())}, any);
        ASSERT_TRUE(found.taken);
        ASSERT_EQ(free.erase(found.entry), 1U);
      }
      ASSERT_FALSE(pool.acquire(SearchHint{1, false, strategy}, any).taken);
    }
  }
  for (const std::uint32_t place : {9500U, 70U, 5000U, 0U}) {
    Entry<int>* gone = all[place];
    ASSERT_TRUE(pool.close(*gone));
    pool.vacate(*gone);
    ASSERT_EQ(pool.reserve(), gone);
    ASSERT_TRUE(pool.enable(*gone, 0, true));
  }
  EXPECT_EQ(pool.blocks(), 150U);
}

TEST(Pool, AnswersEveryRandomHistoryAsItsLockedTwinDoes) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Twins(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace carpool::pool
