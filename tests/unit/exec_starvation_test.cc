// Unit tests of starvation: with few threads, all blocked, production must continue, or the event that ends the
// blocking is never read (a WINDOW_UPDATE that no thread reads while all wait for the window).
#include <memory>
#include <optional>

#include "exec/reserved_threads.h"
#include "exec/strategy.h"
#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

struct StarvationScene {
  StarvationScene(StrategyMode mode, unsigned threads, unsigned reserved) {
    ThreadPoolOptions options;
    options.min = 0;
    options.max = threads;
    pool.emplace(options);
    EXPECT_TRUE(pool->start());
    source.emplace(*pool, "test", 10'000);
    ReserveOptions kept;
    kept.capacity = reserved;
    reserve.emplace(*pool, kept);
    strategy.emplace(mode, queue, *source, &*reserve, nullptr);
  }
  ~StarvationScene() {
    reserve->stop();
    EXPECT_TRUE(pool->stop(20s));
    strategy.reset();
    reserve.reset();
    source.reset();
  }
  Queue queue;
  std::optional<ThreadPool> pool;
  std::optional<TaskSource> source;
  std::optional<ReservedThreads> reserve;
  std::optional<Strategy> strategy;
};

// Every blocking task waits for the window, which only the last, non-blocking task opens.
void opens_its_window(StrategyMode mode, unsigned threads, unsigned reserved, int blocked) {
  Gate window;
  StarvationScene scene(mode, threads, reserved);
  std::atomic<int> ended{0};
  for (int i = 0; i < blocked; ++i) {
    scene.queue.add(make_task("blocked", [&] {
      window.pass();
      ended.fetch_add(1);
    }));
  }
  scene.queue.add(make_task(
      "WINDOW_UPDATE", [&] { window.open(); }, Invocation::non_blocking));
  std::thread io([&] { scene.strategy->produce(); });
  EXPECT_TRUE(eventually([&] { return window.is_open(); }));
  window.open();  // lets a failing test end
  io.join();
  EXPECT_TRUE(eventually([&] { return ended == blocked; }));
}

TEST(Starvation, OfTwoThreadsDoesNotStopProductionWhenAllAreBlocked) {
  for (const unsigned reserved : {0U, 1U, 2U}) opens_its_window(StrategyMode::adaptive, 2, reserved, 2);
}

TEST(Starvation, OfOneThreadDoesNotStopProductionUnderManyBlockedTasks) {
  for (const unsigned reserved : {0U, 1U, 4U}) opens_its_window(StrategyMode::adaptive, 1, reserved, 50);
}

TEST(Starvation, DoesNotStopProduceExecuteConsume) {
  opens_its_window(StrategyMode::produce_execute_consume, 2, 0, 10);
}

// With reserved threads: the role is handed over repeatedly, and the last hand-over finds no thread.
TEST(Starvation, DoesNotEatTheLastProducer) {
  for (int round = 0; round < 20; ++round) {
    Gate window;
    StarvationScene scene(StrategyMode::adaptive, 1, 2);
    for (int i = 0; i < 10; ++i) {
      scene.queue.add(make_task("warms the reserve", [] {}));
      scene.strategy->produce();
      std::this_thread::yield();
    }
    EXPECT_TRUE(eventually([&] { return scene.pool->counts().busy == 0; }));
    std::atomic<int> ended{0};
    for (int i = 0; i < 8; ++i) {
      scene.queue.add(make_task("blocked", [&] {
        window.pass();
        ended.fetch_add(1);
      }));
    }
    scene.queue.add(make_task(
        "WINDOW_UPDATE", [&] { window.open(); }, Invocation::non_blocking));
    std::thread io([&] { scene.strategy->produce(); });
    EXPECT_TRUE(eventually([&] { return window.is_open(); }));
    window.open();
    io.join();
    EXPECT_TRUE(eventually([&] { return ended == 8; }));
  }
}

// A queued helper may wait behind blocked tasks: a producer that found a blocking task does not rely on it.
TEST(Starvation, DoesNotRelyOnAHelperThatIsQueued) {
  Gate window;
  StarvationScene scene(StrategyMode::adaptive, 1, 0);
  scene.source->execute(make_task("holds the only thread", [&] { window.pass(); }));
  EXPECT_TRUE(scene.strategy->dispatch());  // queued behind it
  std::atomic<int> ended{0};
  scene.queue.add(make_task("blocked", [&] {
    window.pass();
    ended.fetch_add(1);
  }));
  scene.queue.add(make_task(
      "WINDOW_UPDATE", [&] { window.open(); }, Invocation::non_blocking));
  std::thread io([&] { scene.strategy->produce(); });
  EXPECT_TRUE(eventually([&] { return window.is_open(); }));
  window.open();
  io.join();
  EXPECT_TRUE(eventually([&] { return ended == 1; }));
}

// Many announcers, real threads, every mode: each task runs once, and one thread produces at a time (asserted by
// Queue).
TEST(ARealStrategy, RunsEveryTaskOnceHoweverManyThreadsAnnounce) {
  for (const StrategyMode mode : {StrategyMode::produce_consume, StrategyMode::produce_execute_consume,
                                  StrategyMode::execute_produce_consume, StrategyMode::adaptive}) {
    StarvationScene scene(mode, 3, 2);
    std::atomic<int> ran{0};
    constexpr int kEach = 3000;
    std::vector<std::thread> announcers;
    for (int a = 0; a < 3; ++a) {
      announcers.emplace_back([&, a] {
        for (int i = 0; i < kEach; ++i) {
          constexpr Invocation kinds[] = {Invocation::blocking, Invocation::non_blocking, Invocation::either};
          scene.queue.add(make_task(
              "counts", [&] { ran.fetch_add(1); }, kinds[(i + a) % 3]));
          i % 5 == 0 ? static_cast<void>(scene.strategy->dispatch()) : scene.strategy->produce();
        }
      });
    }
    for (std::thread& announcer : announcers) announcer.join();
    EXPECT_TRUE(eventually([&] { return ran == 3 * kEach; }));
    EXPECT_EQ(static_cast<std::uint64_t>(3 * kEach), scene.strategy->counts().tasks());
    EXPECT_EQ(0U, scene.strategy->counts().rejected);
  }
}

TEST(ARealStrategy, IsSeenInNumbers) {
  StarvationScene scene(StrategyMode::adaptive, 2, 1);
  std::atomic<int> ran{0};
  for (int i = 0; i < 10; ++i) scene.queue.add(make_task("counts", [&] { ran.fetch_add(1); }));
  scene.strategy->produce();
  EXPECT_TRUE(eventually([&] { return ran == 10; }));
  EXPECT_TRUE(eventually([&] { return scene.reserve->available() == 1 && scene.pool->counts().busy == 0; }));
  const StrategyCounts tasks = scene.strategy->counts();
  const ThreadCounts threads = scene.pool->counts();
  EXPECT_EQ(10U, tasks.tasks());
  EXPECT_EQ(1U, threads.leased) << "the reserved thread";
  EXPECT_EQ(tasks.pec, scene.pool->queue_wait().count());
  EXPECT_EQ(threads.threads, threads.idle + threads.busy + threads.leased + threads.starting);
}

TEST(ARealStrategy, StaysAliveWhenItsPoolStops) {
  StarvationScene scene(StrategyMode::adaptive, 2, 1);
  std::deque<Known> tasks(100);
  for (Known& task : tasks) scene.queue.add(lend(task));
  std::thread io([&] { scene.strategy->produce(); });
  scene.reserve->stop();
  scene.pool->stop(20s);
  io.join();
  Known after(Invocation::non_blocking);
  scene.queue.add(lend(after));
  scene.strategy->produce();
  EXPECT_EQ(1, after.runs) << "a rejected helper does not end production";
  for (const Known& task : tasks) EXPECT_EQ(1, task.runs + task.closes);
}

}  // namespace
}  // namespace carpool::exec
