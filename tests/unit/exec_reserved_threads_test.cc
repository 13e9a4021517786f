// Unit tests of ReservedThreads: a task goes to exactly one thread, at once or not at all.
#include "exec/reserved_threads.h"

#include <optional>
#include <stdexcept>

#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

ThreadPoolOptions pool_options(unsigned min = 0, unsigned max = 4) {
  ThreadPoolOptions options;
  options.min = min;
  options.max = max;
  return options;
}

ReserveOptions of(unsigned capacity) {
  ReserveOptions options;
  options.capacity = capacity;
  return options;
}

struct ReserveScene {
  explicit ReserveScene(ReserveOptions options, ThreadPoolOptions threads = pool_options()) : pool(threads) {
    EXPECT_TRUE(pool.start());
    reserve.emplace(pool, options);
  }
  ~ReserveScene() {
    reserve.reset();
    EXPECT_TRUE(pool.stop(20s));
  }
  // Waits until one thread is reserved.
  bool warm() {
    Known first;
    return eventually([&] { return try_execute(first); }) && eventually([&] { return first.runs == 1; }) &&
           eventually([&] { return reserve->available() == 1; });
  }
  bool try_execute(Task& task) const {
    TaskPtr lent = lend(task);
    if (reserve->try_execute(lent)) return true;
    static_cast<void>(lent.release());
    return false;
  }
  ThreadPool pool;
  mutable std::optional<ReservedThreads> reserve;
};

TEST(ReservedThreads, HasNoThreadBeforeOneWasMissed) {
  const ReserveScene scene(of(4));
  EXPECT_EQ(0U, scene.reserve->available());
  EXPECT_EQ(0U, scene.pool.counts().threads);
  EXPECT_EQ(4U, scene.pool.counts().leases);
}

TEST(ReservedThreads, MissesOnceAndHasAThreadTheNextTime) {
  const ReserveScene scene(of(1));
  Known task;
  EXPECT_FALSE(scene.try_execute(task));
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 1; }));
  EXPECT_TRUE(scene.try_execute(task));
  EXPECT_TRUE(eventually([&] { return task.runs == 1; }));
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 1; })) << "the thread stays for the next one";
  EXPECT_EQ(1U, scene.pool.counts().started);
}

TEST(ReservedThreads, AnswersNoAtOnceWhileItsThreadsAreBusy) {
  Gate gate;
  ReserveScene scene(of(1));
  ASSERT_TRUE(scene.warm());
  Known busy(Invocation::blocking, [&] { gate.pass(); }), other;
  EXPECT_TRUE(scene.try_execute(busy));
  EXPECT_FALSE(scene.try_execute(other));
  EXPECT_EQ(0, other.runs + other.closes) << "still the caller's";
  gate.open();
  EXPECT_TRUE(eventually([&] { return busy.runs == 1; }));
}

TEST(ReservedThreads, OfZeroThreadsNeverAsksForOne) {
  const ReserveScene scene(of(0));
  Known task;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(scene.try_execute(task));
  EXPECT_EQ(0U, scene.pool.counts().started);
}

TEST(ReservedThreads, BoundsHowManyThreadsItHasAskedFor) {
  Gate gate;
  ReserveOptions options = of(8);
  options.max_pending = 2;
  auto threads = pool_options();
  static Gate* starts;
  starts = &gate;
  // Threads that take long to start.
  threads.start = [](pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*), void* self) {
    struct Start {
      void* (*entry)(void*);
      void* self;
    };
    auto start = std::make_unique<Start>(Start{entry, self});
    const auto slow = [](void* argument) -> void* {
      const std::unique_ptr<Start> begin(static_cast<Start*>(argument));
      starts->pass();
      return begin->entry(begin->self);
    };
    return ::pthread_create(thread, attributes, slow, start.release());
  };
  const ReserveScene scene(options, threads);
  Known task;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(scene.try_execute(task));
  EXPECT_EQ(2U, scene.reserve->pending());
  EXPECT_EQ(2U, scene.pool.counts().started);
  gate.open();
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 2; }));
  EXPECT_EQ(0U, scene.reserve->pending());
}

int reserve_starts_left = 0;
int start_some_reserved(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*), void* argument) {
  return reserve_starts_left-- > 0 ? ::pthread_create(thread, attributes, entry, argument) : EAGAIN;
}

TEST(ReservedThreads, AsksAgainAfterThreadsThatCouldNotBeStarted) {
  auto threads = pool_options();
  threads.start = start_some_reserved;
  reserve_starts_left = 0;
  const ReserveScene scene(of(2), threads);
  Known task;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(scene.try_execute(task));
    EXPECT_EQ(0U, scene.reserve->pending()) << "a refused start is not one that is under way";
  }
  reserve_starts_left = 1;
  EXPECT_FALSE(scene.try_execute(task));
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 1; }));
}

TEST(ReservedThreads, LosesNoThreadToATaskThatThrows) {
  std::deque<Known> tasks;  // outlives the threads: a count does not prove that a task has ended
  ReserveScene scene(of(1));
  ASSERT_TRUE(scene.warm());
  for (int i = 1; i <= 20; ++i) {
    tasks.emplace_back(Invocation::blocking, [] { throw std::runtime_error("of its own"); });
    EXPECT_TRUE(eventually([&] { return scene.try_execute(tasks.back()); }));
    EXPECT_TRUE(eventually([&] { return scene.reserve->failed() == static_cast<unsigned>(i); }));
  }
  EXPECT_EQ(1U, scene.pool.counts().started);
}

TEST(ReservedThreads, LetsIdleThreadsGoDownToItsMinimum) {
  ReserveOptions options = of(4);
  options.idle_timeout = 5ms;
  options.min = 1;
  ReserveScene scene(options);
  Gate gate;
  std::deque<Known> held;
  EXPECT_TRUE(eventually([&] {
    held.emplace_back(Invocation::blocking, [&] { gate.pass(); });
    if (!scene.try_execute(held.back())) held.pop_back();
    return held.size() == 4;
  }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return scene.pool.counts().leased == 1; }));
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 1; }));
  for (const Known& task : held) EXPECT_TRUE(eventually([&] { return task.runs == 1; }));
}

// An idle thread withdraws while a caller takes it.
TEST(ReservedThreads, LosesNoTaskToAThreadThatIsLeaving) {
  ReserveOptions options = of(2);
  options.idle_timeout = 20us;
  const ReserveScene scene(options);
  int handed = 0;
  std::deque<Known> tasks;
  for (int i = 0; i < 5000; ++i) {
    tasks.emplace_back();
    if (scene.try_execute(tasks.back())) {
      ++handed;
    } else {
      tasks.pop_back();
      std::this_thread::yield();
    }
  }
  for (Known& task : tasks) EXPECT_TRUE(eventually([&] { return task.runs == 1; }));
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 0; }));
  EXPECT_EQ(static_cast<std::size_t>(handed), tasks.size());
}

TEST(ReservedThreads, GivesEveryTaskToOneThreadUnderContention) {
  const ReserveScene scene(of(4));
  Known first;
  ASSERT_TRUE(eventually([&] { return scene.try_execute(first); }));
  ASSERT_TRUE(eventually([&] { return first.runs == 1; }));
  ASSERT_TRUE(eventually([&] { return scene.reserve->available() > 0; }));
  std::atomic<int> handed{0}, ran{0};
  constexpr int kEach = 5000;
  std::vector<std::thread> takers;
  std::deque<Known> tasks;
  for (int i = 0; i < 3 * kEach; ++i) tasks.emplace_back(Invocation::blocking, [&] { ran.fetch_add(1); });
  for (std::size_t t = 0; t < 3; ++t) {
    takers.emplace_back([&, t] {
      for (std::size_t i = 0; i < kEach; ++i) {
        if (scene.try_execute(tasks[t * kEach + i])) {
          handed.fetch_add(1);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& taker : takers) taker.join();
  EXPECT_TRUE(eventually([&] { return ran == handed; }));
  EXPECT_GT(handed, 0);
  for (const Known& task : tasks) EXPECT_LE(task.runs, 1);
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() + scene.reserve->pending() <= 4; }));
}

TEST(ReservedThreads, IsNotLeftByAThreadThatOffersItselfWhileItStops) {
  for (int round = 0; round < 200; ++round) {
    ReserveScene scene(of(2));
    Known tasks[4];
    std::thread tries([&] {
      for (Known& task : tasks) scene.try_execute(task);
    });
    if (round % 2 == 0) std::this_thread::yield();
    scene.reserve->stop();
    tries.join();
    scene.reserve.reset();  // waits for all its threads
    for (const Known& task : tasks) EXPECT_EQ(0, task.closes);
    EXPECT_TRUE(eventually([&] { return scene.pool.counts().leased == 0; }));
  }
}

// Jobs wait, every ordinary thread is busy, and the reserve takes none of theirs (this once hung a server).
TEST(ReservedThreads, TakesNoThreadFromJobsThatWait) {
  Gate gate;
  std::atomic<int> ran{0};
  ReserveScene scene(of(2), pool_options(1, 1));
  TaskSource source(scene.pool, "test", 10);
  source.execute(make_task("holds", [&] { gate.pass(); }));
  source.execute(make_task("waits", [&] { ran.fetch_add(1); }));
  Known task;
  EXPECT_TRUE(eventually([&] { return scene.try_execute(task); }));
  EXPECT_TRUE(eventually([&] { return task.runs == 1; }));
  EXPECT_EQ(0, ran);
  gate.open();
  EXPECT_TRUE(eventually([&] { return ran == 1; }));
}

TEST(ReservedThreads, IsSeenInTheDumpOfThePool) {
  ReserveScene scene(of(1));
  ASSERT_TRUE(scene.warm());
  EXPECT_TRUE(eventually([&] {
    const auto dump = scene.pool.dump();
    return dump.size() == 1 && dump[0].activity == std::string("reserved") &&
           dump[0].state == ThreadInfo::State::leased;
  }));
}

}  // namespace
}  // namespace carpool::exec
