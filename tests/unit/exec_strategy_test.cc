// Unit tests of Strategy: the thread that runs each task, in every mode, step by step, with executors driven by the
// test.
#include "exec/strategy.h"

#include <stdexcept>

#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

constexpr auto kAllModes = {StrategyMode::produce_consume, StrategyMode::produce_execute_consume,
                            StrategyMode::execute_produce_consume, StrategyMode::adaptive};

// A strategy between a producer and executors that run nothing by themselves.
struct Scene {
  explicit Scene(StrategyMode mode) : strategy(mode, queue, pool, &helpers, &failures) {}
  ~Scene() { finish(); }
  void finish() {
    while (!helpers.tasks.empty() || !pool.tasks.empty()) {
      helpers.run_all();
      pool.run_all();
    }
  }
  void add(Task& task) { queue.add(lend(task)); }
  Queue queue;
  Later pool;
  Helpers helpers;
  Failures failures;
  Strategy strategy;
};

TEST(EveryStrategy, IsIdleWhenNothingIsProduced) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    scene.strategy.produce();
    EXPECT_EQ(1U, scene.queue.produced);
    EXPECT_EQ(0U, scene.strategy.counts().tasks());
    EXPECT_TRUE(scene.pool.tasks.empty());
    EXPECT_TRUE(scene.helpers.tasks.empty());
  }
}

TEST(EveryStrategy, RunsANonBlockingTaskWhereItWasProduced) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    scene.helpers.free = 1;
    Known task(Invocation::non_blocking);
    scene.add(task);
    scene.strategy.produce();
    EXPECT_EQ(1, task.runs);
    EXPECT_EQ(1U, scene.strategy.counts().pc);
    EXPECT_EQ(1, scene.helpers.free) << "nobody was asked";
  }
}

TEST(EveryStrategy, ProducesOnceMoreWhenRequestedWhileItProduces) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    int calls = 0;
    scene.queue.on_produce = [&] {
      if (++calls == 1) scene.strategy.produce();  // while PRODUCING: sets REPRODUCING and returns
    };
    scene.strategy.produce();
    EXPECT_EQ(2, calls);
  }
}

// Otherwise tasks that announce others would nest without a limit.
TEST(EveryStrategy, ProducesNothingInsideOneOfItsTasksThatAnnouncesMore) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    scene.helpers.free = 1;
    bool inside = false;
    bool nested = false;
    Known second(Invocation::non_blocking, [&] { nested = inside; });
    Known first(Invocation::either, [&] {
      inside = true;
      scene.add(second);
      scene.strategy.announce();
      inside = false;
    });
    scene.add(first);
    scene.strategy.produce();
    EXPECT_EQ(1, second.runs) << "produced after the task, by the same thread";
    EXPECT_FALSE(nested);
  }
}

TEST(EveryStrategy, ProducesAtOnceWhatAnotherThreadAnnounces) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    Known task(Invocation::non_blocking);
    scene.add(task);
    EXPECT_FALSE(scene.strategy.notify_producer()) << "there is no producer";
    EXPECT_EQ(0, task.runs);
    scene.strategy.announce();
    EXPECT_EQ(1, task.runs);
  }
}

// The owner of a strategy destroys it when no helper of it exists.
TEST(EveryStrategy, SaysWhichHelpersAreStillToCome) {
  struct Count final : HelperObserver {
    void helper_called() override { ++left; }
    void helper_finished() override { --left; }
    int left = 0;
  };
  for (const StrategyMode mode : {StrategyMode::execute_produce_consume, StrategyMode::adaptive}) {
    for (const bool closed : {false, true}) {
      Queue queue;
      Later pool;
      Helpers helpers;
      helpers.free = 1;
      Count count;
      Strategy strategy(mode, queue, pool, &helpers, nullptr, Clock::now, &count);
      Known task;
      queue.add(lend(task));
      strategy.produce();
      EXPECT_EQ(1, task.runs);
      EXPECT_EQ(1, count.left);
      if (closed) {
        helpers.tasks.clear();
        pool.tasks.clear();
      } else {
        helpers.run_all();
        pool.run_all();
      }
      EXPECT_EQ(0, count.left);
      Known second;
      queue.add(lend(second));
      strategy.dispatch();
      EXPECT_EQ(1, count.left);
      helpers.run_all();
      pool.run_all();
      EXPECT_EQ(0, count.left);
    }
  }
}

TEST(EveryStrategy, ProducesOnAfterATaskThatThrew) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    Known first(Invocation::non_blocking, [] { throw std::runtime_error("first"); });
    Known second(Invocation::non_blocking);
    scene.add(first);
    scene.add(second);
    scene.strategy.produce();
    EXPECT_EQ(1, second.runs);
    EXPECT_EQ(1U, scene.strategy.counts().failed);
    EXPECT_EQ(std::vector<std::string>{"known: first"}, scene.failures.said);
  }
}

TEST(EveryStrategy, TakesAProduceThatThrewForNothingProduced) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    int calls = 0;
    scene.queue.on_produce = [&] {
      if (++calls > 1) return;
      scene.queue.inside = false;
      throw std::runtime_error("no more");
    };
    scene.strategy.produce();
    Known task(Invocation::non_blocking);
    scene.add(task);
    scene.strategy.produce();
    EXPECT_EQ(1, task.runs) << "the role had not left with the exception";
    EXPECT_EQ(std::vector<std::string>{"produce: no more"}, scene.failures.said);
    EXPECT_EQ(1U, scene.strategy.counts().failed);
  }
}

TEST(EveryStrategy, DispatchesToAnotherThreadOnceUntilItCame) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    Known task(Invocation::non_blocking);
    scene.add(task);
    EXPECT_TRUE(scene.strategy.dispatch());
    EXPECT_TRUE(scene.strategy.dispatch()) << "no stampede";
    EXPECT_EQ(0, task.runs);
    EXPECT_EQ(1U, scene.pool.tasks.size());
    scene.pool.run_all();
    EXPECT_EQ(1, task.runs);
    EXPECT_EQ(1U, scene.strategy.counts().took_over);
  }
}

TEST(EveryStrategy, ReportsWhenNoThreadWillProduce) {
  for (const StrategyMode mode : kAllModes) {
    Scene scene(mode);
    scene.pool.refuse = true;
    EXPECT_FALSE(scene.strategy.dispatch());
    scene.pool.refuse = false;
    EXPECT_TRUE(scene.strategy.dispatch()) << "the refused one is not taken for one under way";
  }
}

TEST(ProduceConsume, RunsEverythingItself) {
  Scene scene(StrategyMode::produce_consume);
  Known blocking, either(Invocation::either);
  scene.add(blocking);
  scene.add(either);
  scene.strategy.produce();
  EXPECT_EQ(1, blocking.runs);
  EXPECT_EQ(1, either.runs);
  EXPECT_EQ(2U, scene.strategy.counts().pc);
}

TEST(ProduceExecuteConsume, QueuesTasksThatMayBlock) {
  Scene scene(StrategyMode::produce_execute_consume);
  Known first, second;
  scene.add(first);
  scene.add(second);
  scene.strategy.produce();
  EXPECT_EQ(0, first.runs);
  EXPECT_EQ(2U, scene.pool.tasks.size());
  EXPECT_EQ(2U, scene.strategy.counts().pec);
  scene.finish();
  EXPECT_EQ(1, first.runs);
  EXPECT_EQ(1, second.runs);
}

TEST(ProduceExecuteConsume, ClosesARejectedTask) {
  Scene scene(StrategyMode::produce_execute_consume);
  scene.pool.refuse = true;
  Known task, next(Invocation::non_blocking);
  scene.add(task);
  scene.add(next);
  scene.strategy.produce();
  EXPECT_EQ(0, task.runs);
  EXPECT_EQ(1, task.closes);
  EXPECT_EQ(1, next.runs) << "a rejection does not end production";
  EXPECT_EQ(1U, scene.strategy.counts().rejected);
}

TEST(ExecuteProduceConsume, AsksForAHelperAndRunsTheTaskItself) {
  Scene scene(StrategyMode::execute_produce_consume);
  Known task;
  std::size_t helpers = 0;
  task.work = [&] { helpers = scene.pool.tasks.size(); };
  scene.add(task);
  scene.strategy.produce();
  EXPECT_EQ(1, task.runs);
  EXPECT_EQ(1U, helpers) << "asked before the task ran";
  EXPECT_EQ(1U, scene.strategy.counts().epc);
}

TEST(ExecuteProduceConsume, AsksForOneHelperHoweverManyTasksThereAre) {
  Scene scene(StrategyMode::execute_produce_consume);
  std::vector<Known> tasks(10);
  for (Known& task : tasks) scene.add(task);
  scene.strategy.produce();
  for (const Known& task : tasks) EXPECT_EQ(1, task.runs);
  EXPECT_EQ(1U, scene.pool.tasks.size());
  scene.pool.run_all();
  EXPECT_EQ(1U, scene.strategy.counts().took_over);  // it finds no task
  EXPECT_EQ(10U, scene.strategy.counts().epc);
}

TEST(ExecuteProduceConsume, RunsTheTaskItselfWhenTheHelperIsRejected) {
  Scene scene(StrategyMode::execute_produce_consume);
  scene.pool.refuse = true;
  Known first, second;
  scene.add(first);
  scene.add(second);
  scene.strategy.produce();
  EXPECT_EQ(1, first.runs);
  EXPECT_EQ(1, second.runs);
  EXPECT_EQ(2U, scene.strategy.counts().missed);
  EXPECT_EQ(2U, scene.strategy.counts().pc);
}

TEST(Adaptive, EatsWhatItKillsWhenAThreadIsFree) {
  Scene scene(StrategyMode::adaptive);
  scene.helpers.free = 1;
  Known task;
  scene.add(task);
  scene.strategy.produce();
  EXPECT_EQ(1, task.runs);
  EXPECT_EQ(1U, scene.strategy.counts().epc);
  EXPECT_TRUE(scene.pool.tasks.empty());
}

TEST(Adaptive, QueuesTheTaskWhenNoThreadIsFree) {
  Scene scene(StrategyMode::adaptive);
  Known task, next(Invocation::non_blocking);
  scene.add(task);
  scene.add(next);
  scene.strategy.produce();
  EXPECT_EQ(0, task.runs);
  EXPECT_EQ(1, next.runs) << "production went on here";
  EXPECT_EQ(1U, scene.strategy.counts().pec);
  EXPECT_EQ(1U, scene.strategy.counts().missed);
  scene.finish();
  EXPECT_EQ(1, task.runs);
}

TEST(Adaptive, NeverQueuesATaskThatMayRunEitherWay) {
  Scene scene(StrategyMode::adaptive);
  bool promised = false;
  Known task(Invocation::either, [&] { promised = NonBlockingCall::active(); });
  scene.add(task);
  scene.strategy.produce();
  EXPECT_EQ(1, task.runs);
  EXPECT_TRUE(promised);
  EXPECT_FALSE(NonBlockingCall::active());
  EXPECT_EQ(1U, scene.strategy.counts().pic);

  scene.helpers.free = 1;
  scene.add(task);
  scene.strategy.produce();
  EXPECT_FALSE(promised) << "with a helper it may block";
  EXPECT_EQ(1U, scene.strategy.counts().epc);
}

TEST(Adaptive, NeverLendsAThreadThatPromisedNotToBlock) {
  Scene scene(StrategyMode::adaptive);
  scene.helpers.free = 2;
  Known blocking, either(Invocation::either);
  scene.add(blocking);
  scene.add(either);
  {
    const NonBlockingCall promise;
    scene.strategy.produce();
  }
  EXPECT_EQ(2, scene.helpers.free);
  EXPECT_EQ(0, blocking.runs);
  EXPECT_EQ(1, either.runs);
  const StrategyCounts counts = scene.strategy.counts();
  EXPECT_EQ(1U, counts.pec);
  EXPECT_EQ(1U, counts.pc);
  EXPECT_EQ(0U, counts.epc);
  scene.finish();
}

// Chained strategies: the task of one is the producer of the other, like a connection's streams under a loop's events.
TEST(Adaptive, MayBeStackedOnItself) {
  Scene outer(StrategyMode::adaptive), inner(StrategyMode::adaptive);
  Known stream;
  inner.add(stream);
  inner.helpers.free = 1;
  Known event(Invocation::either, [&] { inner.strategy.produce(); });
  outer.add(event);
  outer.strategy.produce();  // no thread is free: the event promises not to block
  EXPECT_EQ(0, stream.runs);
  EXPECT_EQ(1U, inner.strategy.counts().pec);
  EXPECT_EQ(1, inner.helpers.free);
  inner.finish();
  EXPECT_EQ(1, stream.runs);
}

TEST(Adaptive, HandsTheRoleOverOnceAndGoesOnUntilItIsTaken) {
  Scene scene(StrategyMode::adaptive);
  scene.helpers.free = 5;
  std::vector<Known> tasks(10);
  for (Known& task : tasks) scene.add(task);
  scene.strategy.produce();
  for (const Known& task : tasks) EXPECT_EQ(1, task.runs);
  EXPECT_EQ(4, scene.helpers.free) << "one hand-over for the batch, not one per task";
}

TEST(Adaptive, LetsTheHelperProduceWhileTheTaskBlocks) {
  Scene scene(StrategyMode::adaptive);
  scene.helpers.free = 1;
  Known second(Invocation::non_blocking);
  Known first(Invocation::blocking, [&] {
    scene.helpers.run_all();  // "another thread"
    EXPECT_EQ(1, second.runs) << "produced while the first one blocks";
  });
  scene.add(first);
  scene.add(second);
  scene.strategy.produce();
  EXPECT_EQ(1, first.runs);
  EXPECT_EQ(1U, scene.strategy.counts().took_over);
}

TEST(Adaptive, CountsAHelperThatComesTooLate) {
  Scene scene(StrategyMode::adaptive);
  scene.helpers.free = 1;
  Known first;
  Known second(Invocation::non_blocking, [&] { scene.helpers.run_all(); });  // it arrives while the role is held
  scene.add(first);
  scene.add(second);
  scene.strategy.produce();
  EXPECT_EQ(1U, scene.strategy.counts().noop);
  EXPECT_EQ(0U, scene.strategy.counts().took_over);
}

TEST(Adaptive, RunsTheTaskItselfWhenAnotherThreadTookTheRoleMeanwhile) {
  Scene scene(StrategyMode::adaptive);
  Known task;
  // Between the release of the role and the rejection another thread takes it, and still has it when the rejection is
  // known.
  Gate in_produce, refused;
  std::thread other;
  int calls = 0;
  scene.queue.on_produce = [&] {
    if (++calls != 2) return;
    in_produce.open();
    refused.pass();
  };
  scene.helpers.on_try = [&] {
    other = std::thread([&] { scene.strategy.produce(); });
    in_produce.pass();
  };
  task.work = [&] { refused.open(); };
  scene.add(task);
  scene.strategy.produce();
  other.join();
  EXPECT_EQ(1, task.runs);
  EXPECT_EQ(1U, scene.strategy.counts().epc);
  EXPECT_EQ(1U, scene.strategy.counts().missed);
}

TEST(Adaptive, ClosesATaskThatNoThreadWillRun) {
  Scene scene(StrategyMode::adaptive);
  scene.pool.refuse = true;
  Known task;
  scene.add(task);
  scene.strategy.produce();
  EXPECT_EQ(1, task.closes);
  EXPECT_EQ(1U, scene.strategy.counts().rejected);
}

TEST(Adaptive, IsOffWithoutHelpers) {
  Queue queue;
  Later pool;
  Known task;
  {
    Strategy strategy(StrategyMode::adaptive, queue, pool, nullptr, nullptr);
    queue.add(lend(task));
    strategy.produce();
    EXPECT_EQ(1U, strategy.counts().pec);
    EXPECT_EQ(0U, strategy.counts().missed);
    pool.run_all();
  }
  EXPECT_EQ(1, task.runs);
}

TEST(ATask, MadeOnTheHeapOwnsItsDataAndIsDestroyedAfterItRan) {
  const auto data = std::make_shared<int>(0);
  run_task(make_task("adds", [data] { ++*data; }), nullptr);
  EXPECT_EQ(1, *data);
  EXPECT_EQ(1, data.use_count());
  {
    const TaskPtr never = make_task("never", [data] { ++*data; });
  }
  EXPECT_EQ(1, *data);
  EXPECT_EQ(1, data.use_count());
}

TEST(ATask, ThatThrowsIsDestroyedAllTheSame) {
  const auto data = std::make_shared<int>(0);
  Failures failures;
  EXPECT_FALSE(run_task(make_task("throws", [data] { throw 7; }), &failures));
  EXPECT_EQ(1, data.use_count());
  EXPECT_EQ(1U, failures.said.size());
}

TEST(ATaskQueue, ClosesItsRemainingTasks) {
  Known first, second;
  {
    TaskQueue queue;
    queue.push(lend(first));
    queue.push(lend(second));
    run_task(queue.pop(), nullptr);
  }
  EXPECT_EQ(1, first.runs);
  EXPECT_EQ(0, first.closes);
  EXPECT_EQ(1, second.closes);
}

}  // namespace
}  // namespace carpool::exec
