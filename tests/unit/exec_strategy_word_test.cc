// Unit tests of StrategyWord in every interleaving of its users: a small model of the threads around the pure steps of
// the word, searched exhaustively. No two threads produce, and no announced task is left unproduced.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "exec/strategy_word.h"

namespace carpool::exec {
namespace {

using Word = StrategyWord;

enum class At : std::uint8_t {
  announce,    // adds one task, then produce()
  dispatch,    // adds one task, then dispatch()
  dispatched,  // about to call the queued helper
  begin,       // produce(): about to acquire the role
  look,        // has the role: produces
  end,         // found no task
  let_go,      // has a blocking task
  call,        // about to call the helper
  refused,     // about to reacquire the role
  task,        // runs its task
  note,        // its task has announced one more
  again,       // competes for the role again
  execute,     // role reacquired: the task is queued instead
  gone,
};

constexpr std::size_t kThreads = 3;

// Two actors and the helper's thread.
struct World {
  std::uint32_t word = Word::idle;
  std::array<At, kThreads> at{At::gone, At::gone, At::gone};
  std::uint8_t tasks = 0;               // announced, not produced
  std::uint8_t free = 0;                // hand-overs for which a thread is free
  std::uint8_t makes = 0;               // tasks that make one more while they run
  bool direct = false, queued = false;  // a helper is pending
  // All of it in one number: each field has bits of its own.
  std::uint64_t key() const {
    std::uint64_t bits = word;
    for (const At one : at) bits = bits << 4 | static_cast<std::uint64_t>(one);
    for (const std::uint8_t count : {tasks, free, makes}) bits = bits << 4 | count;
    return bits << 2 | static_cast<std::uint64_t>(direct) << 1 | static_cast<std::uint64_t>(queued);
  }
};

// The rules that a mutant of the word omits.
struct Rules {
  bool poll_acks = true;  // begin() sets REPRODUCING
  bool take_back = true;  // a rejected hand-over reacquires the role
  bool note = true;       // a task that announced one more reports it
};

struct Found {
  bool two_producers = false, forgotten = false;
  std::size_t worlds = 0;
};

class Search {
 public:
  explicit Search(Rules rules) : rules_(rules) {}

  Found from(const World& start) {
    todo_ = {start};
    while (!todo_.empty()) {
      const World world = todo_.back();
      todo_.pop_back();
      if (!seen_.insert(world.key()).second) continue;
      visit(world);
    }
    found_.worlds = seen_.size();
    return found_;
  }

 private:
  void visit(const World& world) {
    int producers = 0;
    for (const At at : world.at) producers += at == At::look || at == At::end || at == At::let_go ? 1 : 0;
    if (producers > 1) found_.two_producers = true;
    bool moved = false;
    for (std::size_t i = 0; i < kThreads; ++i) {
      if (world.at[i] == At::gone) continue;
      moved = true;
      step(world, i);
    }
    for (std::size_t i = 0; i < kThreads; ++i) {
      if (world.at[i] != At::gone) continue;
      if (world.direct) arrive(world, i, Word::direct), moved = true;
      if (world.queued) arrive(world, i, Word::queued), moved = true;
    }
    // A state in which no actor can proceed although work is left.
    if (!moved && world.tasks > 0) found_.forgotten = true;
  }

  void arrive(World world, std::size_t i, Word::Helper helper) {
    (helper == Word::direct ? world.direct : world.queued) = false;
    go(world, i, Word::arrive_step(world.word, helper), At::look, At::gone);
  }

  void go(World world, std::size_t i, Word::Step step, At yes, At no) {
    world.word = step.word;
    world.at[i] = step.yes ? yes : no;
    todo_.push_back(world);
  }

  void to(World world, std::size_t i, At next) {
    world.at[i] = next;
    todo_.push_back(world);
  }

  void step(World world, std::size_t i) {
    switch (world.at[i]) {
      case At::announce:
        ++world.tasks;
        return to(world, i, At::begin);
      case At::dispatch: {
        ++world.tasks;
        return go(world, i, Word::dispatch_step(world.word), At::dispatched, At::gone);
      }
      case At::dispatched:
        world.queued = true;
        return to(world, i, At::gone);
      case At::begin: {
        Word::Step begun = Word::begin_step(world.word);
        if (!rules_.poll_acks && !begun.yes) begun.word = world.word;
        return go(world, i, begun, At::look, At::gone);
      }
      case At::look:
        if (world.tasks == 0) return to(world, i, At::end);
        --world.tasks;
        return to(world, i, At::let_go);
      case At::end:
        return go(world, i, Word::end_step(world.word), At::gone, At::look);
      case At::let_go:
        return go(world, i, Word::release_role_step(world.word, Word::direct), At::call, At::task);
      case At::call:
        // A thread is free or none is: both are explored.
        if (world.free > 0) {
          World free = world;
          --free.free;
          free.direct = true;
          to(free, i, At::task);
        }
        return to(world, i, At::refused);
      case At::refused:
        if (!rules_.take_back) return go(world, i, Word::drop_step(world.word, Word::direct), At::gone, At::gone);
        return go(world, i, Word::reacquire_role_step(world.word, Word::direct), At::execute, At::task);
      case At::execute:
        return to(world, i, At::look);
      case At::task:
        // Both are explored: this task announces one more, or none.
        if (world.makes > 0) {
          World more = world;
          --more.makes;
          ++more.tasks;
          to(more, i, At::note);
        }
        return to(world, i, At::again);
      case At::note:
        if (rules_.note) world.word = Word::notify_step(world.word).word;
        return to(world, i, At::again);
      case At::again:
        return go(world, i, Word::rejoin_step(world.word), At::look, At::gone);
      case At::gone:
        return;
    }
  }

  Rules rules_;
  Found found_;
  std::vector<World> todo_;
  std::unordered_set<std::uint64_t> seen_;
};

Found search(std::array<At, kThreads> actors, std::uint8_t free, Rules rules = {}, std::uint8_t makes = 0) {
  World start;
  start.makes = makes;
  start.at = actors;
  start.free = free;
  return Search(rules).from(start);
}

TEST(StrategyWord, NeverHasTwoProducersAndForgetsNoTaskInAnyInterleaving) {
  const At actors[] = {At::announce, At::dispatch, At::gone};
  for (const At a : actors) {
    for (const At b : actors) {
      for (const At c : actors) {
        for (std::uint8_t free = 0; free <= 2; ++free) {
          for (const std::uint8_t makes : {std::uint8_t{0}, std::uint8_t{1}}) {
            const Found found = search({a, b, c}, free, {}, makes);
            EXPECT_FALSE(found.two_producers);
            EXPECT_FALSE(found.forgotten);
          }
        }
      }
    }
  }
}

TEST(StrategyWord, IsSearchedDeepEnoughToFindAForgottenTask) {
  EXPECT_GT(search({At::announce, At::announce, At::announce}, 2).worlds, 500U);
  EXPECT_TRUE(search({At::announce, At::announce, At::gone}, 0, {.poll_acks = false}).forgotten);
}

TEST(StrategyWord, IsSearchedDeepEnoughToFindARoleThatWasNotTakenBack) {
  EXPECT_TRUE(search({At::announce, At::announce, At::gone}, 0, {.take_back = false}).forgotten);
}

// The thread competes for the role after its task, but another one that finds nothing may have it until then.
TEST(StrategyWord, IsSearchedDeepEnoughToFindATaskThatATaskMadeAndDidNotNote) {
  EXPECT_TRUE(search({At::announce, At::announce, At::gone}, 1, {.note = false}, 1).forgotten);
}

TEST(StrategyWord, NotesForAProducerAloneThatThereMayBeMore) {
  StrategyWord word;
  EXPECT_FALSE(word.notify_producer());
  EXPECT_TRUE(word.is_idle());
  EXPECT_TRUE(word.begin());
  EXPECT_TRUE(word.notify_producer());
  EXPECT_FALSE(word.end()) << "produce once more";
  EXPECT_TRUE(word.end());
}

TEST(StrategyWord, LooksOnceMoreWhenItWasToldToWhileProducing) {
  StrategyWord word;
  EXPECT_TRUE(word.begin());
  EXPECT_FALSE(word.begin());
  EXPECT_FALSE(word.begin());
  EXPECT_FALSE(word.end()) << "produce once more";
  EXPECT_TRUE(word.end());
  EXPECT_TRUE(word.is_idle());
}

TEST(StrategyWord, HasOneHandOverOutstanding) {
  StrategyWord word;
  EXPECT_TRUE(word.begin());
  EXPECT_TRUE(word.release_role(StrategyWord::direct)) << "call it";
  EXPECT_TRUE(word.rejoin());
  EXPECT_FALSE(word.release_role(StrategyWord::direct)) << "it is under way";
  EXPECT_TRUE(word.arrive(StrategyWord::direct));
  EXPECT_TRUE(word.end());
}

TEST(StrategyWord, DoesNotTakeAQueuedHelperForAHandedOne) {
  StrategyWord word;
  EXPECT_TRUE(word.dispatch());
  EXPECT_FALSE(word.dispatch()) << "it is under way";
  EXPECT_TRUE(word.begin());
  EXPECT_TRUE(word.release_role(StrategyWord::direct)) << "the queued one may wait behind tasks that block";
  EXPECT_TRUE(word.arrive(StrategyWord::direct));
  EXPECT_FALSE(word.arrive(StrategyWord::queued));
  EXPECT_TRUE(word.end());
  EXPECT_TRUE(word.is_idle());
}

}  // namespace
}  // namespace carpool::exec
