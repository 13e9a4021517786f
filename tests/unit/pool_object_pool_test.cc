// Unit tests of ObjectPool: handles, a factory, hooks, a tracker, and changes at run time.
#include "pool/core/object_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace carpool::pool {
namespace {

using Thing = std::unique_ptr<int>;
using Things = ObjectPool<Thing>;

std::optional<Thing> make() {
  return std::make_unique<int>(7);
}
template <class L>
auto taken(L& lender, LoopId loop = 0) {
  return lender.acquire_or_make({loop}, make);
}

TEST(AnObjectPool, MakesUpToItsCapAndLendsWhatIsGivenBack) {
  Things things({.cap = 2});
  EXPECT_FALSE(things.acquire());
  auto one = taken(things), other = taken(things);
  ASSERT_TRUE(one && other);
  EXPECT_FALSE(taken(things)) << "the cap";
  int* object = one->get();
  one.give_back();
  EXPECT_FALSE(one);
  const auto again = things.acquire();
  EXPECT_EQ(again->get(), object);
  EXPECT_EQ(again.uses(), 2U);
}

TEST(AnObjectPool, HasItBackWhenTheHandleDiesOrIsReplacedOrIsMovedFrom) {
  Things things({.cap = 1});
  { const auto loan = taken(things); }
  auto loan = things.acquire();
  ASSERT_TRUE(loan);
  auto moved = std::move(loan);
  EXPECT_FALSE(things.acquire());
  moved = {};
  EXPECT_TRUE(things.acquire());
}

TEST(AnObjectPool, EndsWhatIsDiscarded) {
  Things things({.cap = 1});
  auto loan = taken(things);
  loan.discard();
  EXPECT_EQ(things.in_use(), 0U);
  EXPECT_FALSE(things.acquire());
}

TEST(AnObjectPool, KeepsNoPlaceForWhatCouldNotBeMade) {
  Things things({.cap = 1});
  EXPECT_THROW(
      static_cast<void>(things.acquire_or_make({}, []() -> std::optional<Thing> { throw std::runtime_error("no"); })),
      std::runtime_error);
  EXPECT_EQ(things.in_use(), 0U);
  EXPECT_FALSE(things.acquire_or_make({}, [] { return std::optional<Thing>(); }));
  EXPECT_EQ(things.in_use(), 0U);
  EXPECT_TRUE(taken(things));
}

TEST(AnObjectPool, AdoptsAForeignObjectWhileThereIsRoom) {
  Things things({.cap = 1});
  auto mine = std::make_unique<int>(1), late = std::make_unique<int>(2);
  EXPECT_TRUE(things.insert(mine));
  EXPECT_EQ(mine, nullptr);
  EXPECT_FALSE(things.insert(late));
  EXPECT_EQ(*late, 2) << "as it was";
  EXPECT_EQ(**things.acquire(), 1);
}

TEST(AnObjectPool, AfterTerminateEndsWhatComesBackAndLendsNothing) {
  Things things({.cap = 3});
  auto out = taken(things);
  { const auto rests = taken(things); }
  things.terminate();
  EXPECT_EQ(things.counts().ending, 1U);
  EXPECT_EQ(things.counts().idle, 0U);
  EXPECT_FALSE(taken(things));
  auto late = std::make_unique<int>(1);
  EXPECT_FALSE(things.insert(late));
  EXPECT_NE(late, nullptr);
  EXPECT_EQ(**out, 7) << "its user still has it";
  out.give_back();
  EXPECT_EQ(things.in_use(), 0U);
  things.terminate();
}

// Ends its pool when it is moved into it: between the reservation of its place and its publication.
class LastThing {
 public:
  LastThing() = default;
  LastThing(int value, ObjectPool<LastThing>& pool) : value_(value), pool_(&pool) {}
  LastThing(LastThing&& other) noexcept = default;
  LastThing& operator=(LastThing&& other) noexcept {
    value_ = std::exchange(other.value_, 0);
    if (ObjectPool<LastThing>* pool = std::exchange(other.pool_, nullptr)) pool->terminate();
    return *this;
  }
  ~LastThing() = default;
  int value() const { return value_; }

 private:
  int value_ = 0;
  ObjectPool<LastThing>* pool_ = nullptr;
};

TEST(AnObjectPool, ThatEndsWhileAnObjectIsInsertedReturnsIt) {
  ObjectPool<LastThing> things({.cap = 1});
  LastThing mine(7, things);
  EXPECT_FALSE(things.insert(mine));
  EXPECT_EQ(mine.value(), 7) << "as it was";
  EXPECT_EQ(things.in_use(), 0U);
  EXPECT_EQ(things.counts().idle, 0U);
}

// ---- hooks ----

struct Log {
  std::vector<std::string> said;
  int refuse = 0;
};
struct Telling {
  Log* log;
  bool on_acquire(Thing& thing) const {
    log->said.push_back("ready " + std::to_string(*thing));
    return log->refuse-- <= 0;
  }
  void on_release(Thing& thing) const {
    log->said.push_back("anonymous " + std::to_string(*thing));
    *thing = 0;
  }
};

TEST(AHook, RunsOncePerHandleAndMakesWhatComesBackAnonymous) {
  Log log;
  ObjectPool<Thing, Telling> things({.cap = 1}, {&log});
  { const auto loan = taken(things); }
  { const auto loan = things.acquire(); }
  EXPECT_EQ(log.said, (std::vector<std::string>{"ready 7", "anonymous 7", "ready 0", "anonymous 0"}));
}

TEST(AHook, ThatRefusesEndsTheObjectAndTheNextIsTried) {
  Log log;
  ObjectPool<Thing, Telling> things({.cap = 3}, {&log});
  for (int value : {1, 2, 3}) {
    auto mine = std::make_unique<int>(value);
    ASSERT_TRUE(things.insert(mine));
  }
  log.refuse = 2;
  const auto loan = things.acquire();
  ASSERT_TRUE(loan);
  EXPECT_EQ(log.said.size(), 3U) << "each once";
  EXPECT_EQ(things.in_use(), 1U) << "two ended";
}

TEST(AHook, ThatRefusesWhatWasJustMadeLeavesNothingBehind) {
  Log log;
  ObjectPool<Thing, Telling> things({.cap = 1}, {&log});
  log.refuse = 1;
  EXPECT_FALSE(taken(things));
  EXPECT_EQ(things.in_use(), 0U);
  EXPECT_TRUE(taken(things));
}

TEST(AHook, IsNotAskedForWhatIsDiscarded) {
  Log log;
  ObjectPool<Thing, Telling> things({.cap = 1}, {&log});
  taken(things).discard();
  EXPECT_EQ(log.said, std::vector<std::string>{"ready 7"});
}

struct Throwing {
  static bool on_acquire(Thing&) { throw std::runtime_error("not today"); }
};
TEST(AHook, ThatThrowsEndsTheObjectAndIsHeard) {
  ObjectPool<Thing, Throwing> things({.cap = 1});
  EXPECT_THROW(static_cast<void>(taken(things)), std::runtime_error);
  EXPECT_EQ(things.in_use(), 0U);
}

TEST(AHook, RunsOncePerHandleHoweverManyRaceForTheObject) {
  struct Counting {
    std::atomic<int>*ready, *anonymous;
    bool on_acquire(Thing& thing) const {
      ++*thing;  // plain: exclusively ours
      return ++*ready, true;
    }
    void on_release(Thing& thing) const {
      --*thing;
      ++*anonymous;
    }
  };
  constexpr unsigned kThreads = 4;
  std::atomic<int> ready{0}, anonymous{0}, loans{0};
  ObjectPool<Thing, Counting> things({.cap = 2, .loops = kThreads}, {&ready, &anonymous});
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] {
      for (int turn = 0; turn < 20000; ++turn) {
        if (const auto loan = taken(things, static_cast<LoopId>(n))) {
          EXPECT_EQ(**loan, 8);
          ++loans;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ready, loans);
  EXPECT_EQ(anonymous, loans);
}

// Records the holder of each object, to find leaks.
struct Tracker {
  struct Seen {
    std::set<std::uint32_t> out;
    int ended = 0, terminated = 0;
  };
  Seen* seen;
  void lent(std::uint32_t place) const { seen->out.insert(place); }
  void returned(std::uint32_t place) const { seen->out.erase(place); }
  void ended(std::uint32_t place) const {
    seen->out.erase(place);
    ++seen->ended;
  }
  void terminated() const { ++seen->terminated; }
};

TEST(ATracker, KnowsWhoseHandleIsStillOut) {
  Tracker::Seen seen;
  ObjectPool<Thing, Tracker> things({.cap = 3}, {&seen});
  auto kept = taken(things), back = taken(things), gone = taken(things);
  back.give_back();
  gone.discard();
  EXPECT_EQ(seen.out, std::set<std::uint32_t>{kept.place()});
  EXPECT_EQ(seen.ended, 1);
  things.terminate();
  kept.give_back();
  EXPECT_TRUE(seen.out.empty());
  EXPECT_EQ(seen.ended, 3);
  EXPECT_EQ(seen.terminated, 1);
}

TEST(ATracker, IsToldOnceThatThePoolTerminates) {
  Tracker::Seen seen;
  {
    ObjectPool<Thing, Tracker> things({.cap = 3}, {&seen});
    things.terminate();
    things.terminate();
  }
  EXPECT_EQ(seen.terminated, 1);
}

// ---- changes at run time ----

TEST(AnObjectPool, LendsAsOftenAsItsLimitSaysAndHearsOfALowerOneAtOnce) {
  Things things({.cap = 1, .max_usage = 2});
  int* first = taken(things)->get();
  auto second = things.acquire();
  EXPECT_EQ(second->get(), first);
  second.give_back();
  EXPECT_EQ(things.in_use(), 0U) << "used up";

  things.max_usage(0);
  for (int n = 0; n < 5; ++n) {
    const auto loan = taken(things);
  }
  EXPECT_EQ(things.in_use(), 1U);
  things.max_usage(3);
  EXPECT_FALSE(things.acquire()) << "it has served five times";
  EXPECT_EQ(things.in_use(), 0U);
}

TEST(AnObjectPool, EndsASharedObjectThatIsUsedUpWithItsLastUser) {
  Things things({.cap = 1, .multiplex = 3, .max_usage = 2});
  auto one = taken(things);
  auto two = things.acquire();
  ASSERT_TRUE(two);
  EXPECT_FALSE(things.acquire());
  one.give_back();
  EXPECT_EQ(**two, 7);
  EXPECT_EQ(things.in_use(), 1U);
  two.give_back();
  EXPECT_EQ(things.in_use(), 0U);
}

TEST(AnObjectPool, FollowsTheNumberThatMayShare) {
  Things things({.cap = 1, .multiplex = 2});
  const auto one = taken(things), two = things.acquire();
  EXPECT_FALSE(things.acquire());
  things.share(one, 3);
  auto three = things.acquire();
  EXPECT_TRUE(three);
  things.share(one, 2);
  three.give_back();
  EXPECT_FALSE(things.acquire()) << "two use it, two may";
}

TEST(AnObjectPool, FollowsItsCap) {
  Things things({.cap = 1});
  const auto one = taken(things);
  things.cap(2);
  auto two = taken(things);
  EXPECT_TRUE(two);
  things.cap(1);
  two.discard();
  EXPECT_FALSE(taken(things));
}

// ---- affinity and statistics ----

TEST(AnObjectPool, BeginsAtThePlaceThatTheKeyFallsOn) {
  ObjectPool<int> things({.cap = 4});
  for (int n = 0; n < 4; ++n) {
    int value = n;
    ASSERT_TRUE(things.insert(value));
  }
  for (std::uint32_t key = 0; key < 8; ++key) {
    EXPECT_EQ(*things.acquire({.on_loop = false, .strategy = Strategy::thread_id, .key = key}),
              static_cast<int>(key % 4));
  }
}

TEST(AnObjectPool, GivesEachSideItsOwnBack) {
  ObjectPool<int> things({.cap = 2, .loops = 2});
  for (int value : {0, 1}) ASSERT_TRUE(things.insert(value, static_cast<LoopId>(value)));
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(*things.acquire({.loop = 0}), 0);
    EXPECT_EQ(*things.acquire({.loop = 1}), 1);
  }
}

TEST(AnObjectPool, SpreadsOverAllWhenThatIsAsked) {
  ObjectPool<int> things({.cap = 200, .loops = 2});
  for (int n = 0; n < 200; ++n) {
    int value = n;
    ASSERT_TRUE(things.insert(value, static_cast<LoopId>(n % 2)));
  }
  std::set<int> seen;
  for (int n = 0; n < 200; ++n) seen.insert(*things.acquire({.strategy = Strategy::round_robin}));
  EXPECT_EQ(seen.size(), 200U) << "each in turn";
  seen.clear();
  for (int n = 0; n < 4000; ++n) seen.insert(*things.acquire({.strategy = Strategy::random}));
  EXPECT_GT(seen.size(), 190U) << "none is favoured";
}

TEST(AnObjectPool, ShowsWhatItHolds) {
  Things things({.cap = 4, .multiplex = 2});
  const auto loan = taken(things);
  auto mine = std::make_unique<int>(1);
  ASSERT_TRUE(things.insert(mine));
  EXPECT_EQ(things.dump(),
            "2 of 4 places\n0: lent, 1 of 2 users, 1 uses, home 0\n1: idle, 0 of 2 users, 0 uses, home 0\n");
  EXPECT_EQ(things.counts().lent, 1U);
  EXPECT_EQ(things.counts().idle, 1U);
}

}  // namespace
}  // namespace carpool::pool
