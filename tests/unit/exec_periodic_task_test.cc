// Unit tests of PeriodicTask: no end of a round ends the cycle, and stop() does.
#include "exec/periodic_task.h"

#include <optional>
#include <stdexcept>

#include "tests/unit/exec_support.h"
#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

struct Rounds final : PeriodicTask::Work {
  const char* name() const override { return "rounds"; }
  Duration postpone() override {
    ++asked;
    return later;
  }
  void work() override {
    ++worked;
    if (during) during();
    if (throws) throw std::runtime_error("the disk is gone");
  }
  void ended(bool done) override { ++(done ? good : bad); }
  std::function<void()> during;
  Duration later{};
  bool throws = false;
  int asked = 0, worked = 0, good = 0, bad = 0;
};

// Turns the loop for that long.
void pass(UvLoop& loop, Duration time) {
  bool over = false;
  OnTime timer(loop, [&] { over = true; });
  timer.timer.arm(Clock::now() + time);
  turn_until(loop, [&] { return over; });
}

// The executor runs nothing before run_all().
struct TaskScene {
  ~TaskScene() {
    assume_on_loop();
    cycle->stop();
    executor.run_all();
    loop->drain();
    cycle.reset();
  }
  void until_queued() {
    turn_until(*loop, [this] { return !executor.tasks.empty(); });
  }
  void until(const int& count, int wanted) {
    turn_until(*loop, [&] {
      executor.run_all();
      return count >= wanted;
    });
  }
  std::unique_ptr<UvLoop> loop = make_loop();
  Later executor;
  Rounds work;
  std::optional<PeriodicTask> cycle{std::in_place, *loop, executor, work, 1ms};
};

TEST(APeriodicTask, RunsAgainAndAgain) {
  TaskScene scene;
  scene.until(scene.work.good, 3);
  EXPECT_EQ(0, scene.work.bad);
}

TEST(APeriodicTask, GoesOnAfterARoundThatThrew) {
  TaskScene scene;
  scene.work.throws = true;
  scene.until(scene.work.bad, 2);
  scene.work.throws = false;
  scene.until(scene.work.good, 1);
  EXPECT_LE(2, scene.work.bad);
}

TEST(APeriodicTask, GoesOnAfterItWasRejected) {
  TaskScene scene;
  scene.executor.refuse = true;
  scene.until(scene.work.bad, 2);
  EXPECT_EQ(0, scene.work.worked);
  scene.executor.refuse = false;
  scene.until(scene.work.good, 1);
}

TEST(APeriodicTask, AsksAgainLaterWhenARoundIsPostponed) {
  TaskScene scene;
  scene.work.later = 2ms;
  scene.until(scene.work.asked, 3);
  EXPECT_EQ(0, scene.work.worked);
  scene.work.later = {};
  scene.until(scene.work.good, 1);
}

TEST(APeriodicTask, NeverHasTwoRoundsAtOnce) {
  TaskScene scene;
  scene.until_queued();
  pass(*scene.loop, 5ms);
  EXPECT_EQ(1U, scene.executor.tasks.size());
}

TEST(APeriodicTask, BeginsNoRoundAfterItStopped) {
  TaskScene scene;
  assume_on_loop();
  scene.cycle->stop();
  pass(*scene.loop, 5ms);
  EXPECT_EQ(0, scene.work.asked);
}

TEST(APeriodicTask, ReportsTheRoundThatRanWhenItWasStoppedAndBeginsNoOther) {
  TaskScene scene;
  scene.until_queued();
  assume_on_loop();
  scene.cycle->stop();
  EXPECT_TRUE(scene.cycle->running());
  scene.until(scene.work.good, 1);
  EXPECT_FALSE(scene.cycle->running());
  pass(*scene.loop, 5ms);
  EXPECT_EQ(1, scene.work.asked);
}

// On real threads; what work() wrote is plain data, so TSan reports if the mail does not publish it.
TEST(APeriodicTask, ShowsTheLoopWhatTheRoundWrote) {
  ThreadPool pool{ThreadPoolOptions{}};
  ASSERT_TRUE(pool.start());
  TaskSource source(pool, "rounds", 4);
  auto loop = make_loop();
  Rounds work;
  {
    PeriodicTask cycle(*loop, source, work, 1ms);
    turn_until(*loop, [&] { return work.good >= 20; });
    assume_on_loop();
    cycle.stop();
    turn_until(*loop, [&] {
      assume_on_loop();
      return !cycle.running();
    });
    EXPECT_EQ(work.worked, work.good);
  }
  EXPECT_TRUE(pool.stop(20s));
}

}  // namespace
}  // namespace carpool::exec
