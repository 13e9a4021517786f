// Unit tests of TaskExecutor: limits on named tasks, existing and running.
#include "exec/task_executor.h"

#include <optional>

#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

struct ExecutorScene {
  explicit ExecutorScene(unsigned max_tasks, unsigned max_running, unsigned threads = 8) {
    ThreadPoolOptions options;
    options.min = 0;
    options.max = threads;
    pool.emplace(options);
    EXPECT_TRUE(pool->start());
    executor.emplace(*pool, TaskExecutorOptions{.max_tasks = max_tasks, .max_running = max_running});
  }
  ~ExecutorScene() {
    executor.reset();
    EXPECT_TRUE(pool->stop(20s));
  }
  std::optional<ThreadPool> pool;
  std::optional<TaskExecutor> executor;
};

TEST(TaskExecutor, BoundsTheTasksThatRunAndThoseThatExist) {
  Gate gate;
  ExecutorScene scene(10, 3);
  std::deque<Known> tasks;
  int taken = 0;
  for (int i = 0; i < 15; ++i) {
    tasks.emplace_back(Invocation::blocking, [&] { gate.pass(); });
    taken += scene.executor->execute(lend(tasks.back())) ? 1 : 0;
  }
  EXPECT_EQ(10, taken);
  EXPECT_EQ(3U, scene.executor->counts().running);
  EXPECT_EQ(7U, scene.executor->counts().queued);
  EXPECT_EQ(5U, scene.executor->counts().rejected);
  EXPECT_LE(scene.pool->counts().threads, 3U);
  gate.open();
  EXPECT_TRUE(scene.executor->join(Clock::now() + 20s));
  int ran = 0, closed = 0;
  for (const Known& task : tasks) ran += task.runs, closed += task.closes;
  EXPECT_EQ(10, ran);
  EXPECT_EQ(5, closed);
  EXPECT_TRUE(scene.executor->execute(make_task("again", [] {}))) << "there is room again";
}

TEST(TaskExecutor, NeverRunsMoreThanItMayUnderContention) {
  std::atomic<int> inside{0}, most{0}, ran{0};
  ExecutorScene scene(100'000, 2);
  std::vector<std::thread> senders;
  for (int s = 0; s < 3; ++s) {
    senders.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        EXPECT_TRUE(scene.executor->execute(make_task("counts", [&] {
          const int now = inside.fetch_add(1) + 1;
          int before = most.load();
          while (before < now && !most.compare_exchange_weak(before, now)) {
          }
          inside.fetch_sub(1);
          ran.fetch_add(1);
        })));
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(scene.executor->join(Clock::now() + 20s));
  EXPECT_EQ(6000, ran);
  EXPECT_LE(most, 2);
  EXPECT_EQ(0U, scene.executor->counts().running);
}

TEST(TaskExecutor, LosesNoPermitToATaskThatThrows) {
  std::atomic<int> inside{0};
  Gate gate;
  ExecutorScene scene(1000, 2);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(scene.executor->execute(make_task("throws", [] { throw 1; })));
  EXPECT_TRUE(scene.executor->join(Clock::now() + 20s));
  EXPECT_EQ(100U, scene.executor->counts().failed);
  for (int i = 0; i < 2; ++i) {
    scene.executor->execute(make_task("holds", [&] {
      inside.fetch_add(1);
      gate.pass();
    }));
  }
  EXPECT_TRUE(eventually([&] { return inside == 2; })) << "both permits are there";
  gate.open();
}

TEST(TaskExecutor, RejectsWhenItIsStoppedAndClosesTasksThatHadNotBegun) {
  Gate gate;
  ExecutorScene scene(10, 1);
  Known running(Invocation::blocking, [&] { gate.pass(); }), queued, late;
  scene.executor->execute(lend(running));
  scene.executor->execute(lend(queued));
  EXPECT_FALSE(scene.executor->join(Clock::now())) << "a task exists";
  scene.executor->stop();
  EXPECT_EQ(1, queued.closes);
  EXPECT_FALSE(scene.executor->execute(lend(late)));
  EXPECT_EQ(1, late.closes);
  gate.open();
  EXPECT_TRUE(scene.executor->join(Clock::now() + 20s));
  EXPECT_EQ(1, running.runs);
}

TEST(TaskExecutor, ClosesTheTaskAndTakesThePermitBackWhenThePoolRefuses) {
  ExecutorScene scene(10, 1);
  EXPECT_TRUE(scene.pool->stop(20s));
  for (int i = 0; i < 5; ++i) {
    Known task;
    EXPECT_FALSE(scene.executor->execute(lend(task)));
    EXPECT_EQ(1, task.closes);
    EXPECT_EQ(0U, scene.executor->counts().running) << "no permit is lost";
  }
}

TEST(TaskExecutor, ListsEveryTaskByName) {
  Gate gate;
  ExecutorScene scene(10, 1);
  scene.executor->execute(make_task("gzip", [&] { gate.pass(); }));
  scene.executor->execute(make_task("fsync", [] {}));
  const auto dump = scene.executor->dump();
  ASSERT_EQ(2U, dump.size());
  EXPECT_STREQ("gzip", dump[0].name);
  EXPECT_TRUE(dump[0].running);
  EXPECT_STREQ("fsync", dump[1].name);
  EXPECT_FALSE(dump[1].running);
  gate.open();
}

TEST(TaskExecutor, HandsATaskBackThatThePoolRefuses) {
  ExecutorScene scene(10, 1);
  EXPECT_TRUE(scene.pool->stop(20s));
  Known task;
  TaskPtr lent = lend(task);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(scene.executor->try_execute(lent));
    ASSERT_EQ(&task, lent.get());
    EXPECT_EQ(0, task.closes);
    EXPECT_EQ(0U, scene.executor->counts().running) << "no permit is lost";
  }
  EXPECT_EQ(3U, scene.executor->counts().rejected);
  EXPECT_TRUE(run_task(std::move(lent), nullptr));
  EXPECT_EQ(1, task.runs);
}

TEST(TaskExecutor, LeavesATaskThatItCannotTryToItsCaller) {
  Gate gate;
  ExecutorScene scene(1, 1);
  scene.executor->execute(make_task("holds", [&] { gate.pass(); }));
  Known task;
  TaskPtr lent = lend(task);
  EXPECT_FALSE(scene.executor->try_execute(lent));
  EXPECT_EQ(0, task.closes);
  lent.reset();
  EXPECT_EQ(1, task.closes);
  gate.open();
}

}  // namespace
}  // namespace carpool::exec
