// Unit tests of the hand-over pace in virtual time: the pace alone, and the adaptive strategy with helpers that run
// when the test lets them.
#include "exec/handover_pace.h"

#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

constexpr Duration kLate = HandoverPace::kLate, kShortest = HandoverPace::kShortest, kLongest = HandoverPace::kLongest;

class Pace : public ::testing::Test {
 protected:
  void hand_over(Duration alone) {
    pace.role_released(now);
    now += alone;
    pace.role_taken(now);
  }
  void hand_over_in_time(int times) {
    for (int n = 0; n < times * static_cast<int>(HandoverPace::kInTime); ++n) hand_over(kLate - 1ns);
  }
  // Returns how long hand-overs pause from now on; the hand-over afterwards is allowed.
  Duration pause() {
    if (!pace.paused()) return Duration::zero();
    Duration waited{};
    for (; !pace.resume(now); now += 1ms) waited += 1ms;
    EXPECT_FALSE(pace.paused());
    return waited;
  }
  HandoverPace pace;
  Instant now{1h};
};

TEST_F(Pace, DoesNotPauseForHandOversInTime) {
  hand_over_in_time(100);
  EXPECT_FALSE(pace.paused());
}

TEST_F(Pace, DoublesThePauseWithEachLateOneUpToTheLongest) {
  for (Duration expected = kShortest; expected < 3 * kLongest; expected *= 2) {
    hand_over(kLate);
    EXPECT_EQ(std::min(expected, kLongest), pause());
  }
}

TEST_F(Pace, HalvesThePauseAfterAsManyInARowThatWereInTime) {
  for (int n = 0; n < 5; ++n) {  // 64, 128, 256, 512, 1024 ms
    hand_over(kLate);
    pause();
  }
  hand_over_in_time(2);
  EXPECT_FALSE(pace.paused());
  hand_over(kLate);
  EXPECT_EQ(512ms, pause());
  hand_over_in_time(4);
  hand_over(kLate);
  EXPECT_EQ(kShortest, pause()) << "forgotten";
}

TEST_F(Pace, PausesLongerWhereLateOnesComeBetweenOthers) {
  for (Duration expected = kShortest; expected <= kLongest; expected *= 2) {
    for (unsigned n = 1; n < HandoverPace::kInTime; ++n) hand_over(1us);
    hand_over(kLate);
    EXPECT_EQ(std::min(expected, kLongest), pause());
  }
}

// ---- the strategy ----

struct VirtualTime {
  static Instant read() { return now; }
  static inline Instant now{1h};
};

struct Paced {
  ~Paced() {
    helpers.run_all();
    pool.run_all();
  }
  // Runs `works`, or queues it.
  void produce(Duration works, Invocation invocation = Invocation::blocking) {
    tasks.emplace_back(invocation, [works] { VirtualTime::now += works; });
    queue.add(lend(tasks.back()));
    strategy.produce();
  }
  std::deque<Known> tasks;
  Queue queue;
  Later pool;
  Helpers helpers;
  Failures failures;
  Strategy strategy{StrategyMode::adaptive, queue, pool, &helpers, &failures, &VirtualTime::read};
};

TEST(AdaptivePace, QueuesTasksAfterAHelperThatLeftTheLoopAlone) {
  Paced scene;
  scene.helpers.free = 10;
  scene.produce(kLate);  // the helper has not started when the task is done
  EXPECT_EQ(1, scene.tasks.back().runs);
  scene.helpers.run_all();
  scene.produce(kLate);
  EXPECT_EQ(0, scene.tasks.back().runs) << "queued: production goes on";
  EXPECT_EQ(1U, scene.pool.tasks.size());
  EXPECT_EQ(9, scene.helpers.free) << "nobody was called";
  const StrategyCounts counts = scene.strategy.counts();
  EXPECT_EQ(1U, counts.epc);
  EXPECT_EQ(1U, counts.pec);
  EXPECT_EQ(1U, counts.paused);
  EXPECT_EQ(0U, counts.missed);
}

TEST(AdaptivePace, TriesAgainAfterThePause) {
  Paced scene;
  scene.helpers.free = 10;
  scene.produce(kLate);
  scene.helpers.run_all();
  VirtualTime::now += kShortest;
  scene.produce(1us);
  EXPECT_EQ(1, scene.tasks.back().runs) << "eaten where it was produced";
  scene.helpers.run_all();
  scene.produce(1us);
  EXPECT_EQ(1, scene.tasks.back().runs) << "the trial was in time";
  EXPECT_EQ(0U, scene.strategy.counts().paused);
}

TEST(AdaptivePace, IsNotTroubledByAHelperThatComesWhileATaskTakesLong) {
  Paced scene;
  scene.helpers.free = 10;
  Known task(Invocation::blocking, [&] {
    VirtualTime::now += 100us;
    scene.helpers.run_all();  // "another thread"
    VirtualTime::now += 1h;
  });
  for (int n = 0; n < 3; ++n) {
    scene.queue.add(lend(task));
    scene.strategy.produce();
  }
  EXPECT_EQ(3, task.runs);
  EXPECT_EQ(3U, scene.strategy.counts().epc);
  EXPECT_EQ(0U, scene.strategy.counts().paused);
}

TEST(AdaptivePace, BlamesNoHelperWhereNoneWasFree) {
  Paced scene;
  scene.produce(1us);
  VirtualTime::now += 1h;
  scene.helpers.free = 1;
  scene.produce(1us);
  EXPECT_EQ(1, scene.tasks.back().runs);
  EXPECT_EQ(1U, scene.strategy.counts().missed);
  EXPECT_EQ(0U, scene.strategy.counts().paused);
}

TEST(AdaptivePace, NeverQueuesATaskThatMayRunEitherWay) {
  Paced scene;
  scene.helpers.free = 10;
  scene.produce(kLate);
  scene.helpers.run_all();
  scene.produce(1us, Invocation::either);
  EXPECT_EQ(1, scene.tasks.back().runs);
  EXPECT_EQ(1U, scene.strategy.counts().pic);
  EXPECT_EQ(1U, scene.strategy.counts().paused);
}

}  // namespace
}  // namespace carpool::exec
