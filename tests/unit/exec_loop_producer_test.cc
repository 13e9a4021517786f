// Unit tests of LoopProducer: a real loop whose role moves between threads loses nothing, and its threads publish their
// data to each other (TSan; tests/mutants/strategy_word.sh is the negative control).
#include "exec/uv/loop_producer.h"

#include <optional>
#include <set>
#include <stdexcept>

#include "exec/reserved_threads.h"
#include "exec/thread_pool.h"
#include "tests/unit/exec_support.h"
#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

// A loop on leased threads. Members are destroyed in the required order.
struct Driven {
  explicit Driven(unsigned reserved, StrategyMode mode = StrategyMode::adaptive, FailureSink* failures = nullptr)
      : loop(make_loop()), producer(*loop, 1000, failures) {
    ThreadPoolOptions options;
    options.min = 0;
    options.max = 2;
    pool.emplace(options);
    EXPECT_TRUE(pool->start());
    lease.emplace(pool->lease(1));
    source.emplace(*pool, "loop 0", 1000);
    ReserveOptions kept;
    kept.capacity = reserved;
    reserve.emplace(*pool, kept);
    strategy.emplace(mode, producer, *source, reserved == 0 ? nullptr : &*reserve, failures);
  }
  void start() {
    TaskPtr role = make_task("loop 0", [this] { strategy->produce(); });
    // A reserved thread that has just ended may not have returned its place yet.
    ASSERT_TRUE(eventually([&] { return pool->execute_leased(role); }));
  }
  // Waits until a thread is reserved.
  bool warm() {
    Known first;
    TaskPtr task = lend(first);
    return eventually([&] { return reserve->try_execute(task); }) && eventually([&] { return first.runs == 1; }) &&
           eventually([&] { return reserve->available() > 0; });
  }
  void stop() {
    producer.stop();
    producer.wait_until_stopped();
    reserve->stop();
    EXPECT_TRUE(pool->stop(20s));
    EXPECT_TRUE(loop != nullptr);
    loop->drain();
  }
  ~Driven() {
    strategy.reset();
    reserve.reset();
    source.reset();
    lease.reset();
  }
  std::unique_ptr<UvLoop> loop;
  LoopProducer producer;
  std::optional<ThreadPool> pool;
  std::optional<ThreadPool::Lease> lease;
  std::optional<TaskSource> source;
  std::optional<ReservedThreads> reserve;
  std::optional<Strategy> strategy;
};

// Plain data of the loop, as a proxy's: accessed in its callbacks only, by whichever thread has the role.
struct Actor final : Mail {
  explicit Actor(Driven& d) : driven(d) {}
  void arrive() override LOOP_ONLY {
    threads.insert(std::this_thread::get_id());
    ++turns_seen;
    if (rounds == 0) return done.open();
    --rounds;
    EXPECT_TRUE(driven.producer.submit(make_task("blocks", [this] {
      blocked.fetch_add(1);
      if (work) work();
      driven.loop->post(*this);  // its result is posted to the loop
    })));
  }
  Driven& driven;
  int rounds = 0;
  std::uint64_t turns_seen = 0;
  std::set<std::thread::id> threads;
  std::function<void()> work;
  std::atomic<int> blocked{0};
  Gate done;
};

TEST(LoopProducer, TurnsItsLoopUntilItIsStopped) {
  for (int round = 0; round < 20; ++round) {
    Driven driven(1);
    driven.start();
    driven.stop();
    EXPECT_EQ(0U, driven.strategy->counts().tasks());
  }
}

TEST(LoopProducer, MovesTheLoopBetweenThreadsAndKeepsItWhole) {
  Driven driven(2);
  ASSERT_TRUE(driven.warm());
  // Occasionally a task blocks until the loop has run once more: only another thread can have driven it.
  std::atomic<int> turned{0};
  OnArrive knock([&] {
    turned.fetch_add(1, std::memory_order_release);
    turned.notify_all();
  });
  Actor actor(driven);
  actor.rounds = 2000;
  actor.work = [&] {
    if (actor.blocked % 20 != 1) return;
    const int before = turned.load();
    driven.loop->post(knock);
    turned.wait(before, std::memory_order_acquire);
  };
  driven.loop->post(actor);
  driven.start();
  actor.done.pass();
  driven.stop();
  EXPECT_EQ(2000, actor.blocked);
  EXPECT_EQ(2001U, actor.turns_seen);
  EXPECT_GT(actor.threads.size(), 1U) << "the role has moved";
  const StrategyCounts counts = driven.strategy->counts();
  EXPECT_EQ(2000U, counts.tasks());
  EXPECT_GT(counts.took_over, 0U);
}

TEST(LoopProducer, StaysOnOneThreadWithoutAReserve) {
  Driven driven(0);
  Actor actor(driven);
  actor.rounds = 500;
  driven.loop->post(actor);
  driven.start();
  actor.done.pass();
  driven.stop();
  EXPECT_EQ(1U, actor.threads.size());
  EXPECT_EQ(500U, driven.strategy->counts().pec);
  EXPECT_EQ(0U, driven.strategy->counts().epc);
}

// While a task blocks, the loop continues.
TEST(LoopProducer, TurnsOnWhileATaskBlocks) {
  for (const unsigned reserved : {0U, 1U}) {
    Driven driven(reserved);
    Gate gate;
    Actor blocks(driven);
    blocks.rounds = 1;
    blocks.work = [&] { gate.pass(); };
    driven.loop->post(blocks);
    driven.start();
    EXPECT_TRUE(eventually([&] { return blocks.blocked == 1; }));
    OnArrive others([&] { gate.open(); });  // runs on the loop while the task holds its thread
    driven.loop->post(others);
    blocks.done.pass();
    driven.stop();
  }
}

TEST(LoopProducer, HandsOutEveryTaskOfATurn) {
  Driven driven(2);
  std::atomic<int> ran{0};
  OnArrive burst([&] {
    assume_on_loop();
    for (int i = 0; i < 500; ++i) {
      EXPECT_TRUE(driven.producer.submit(make_task("one of many", [&] { ran.fetch_add(1); })));
    }
  });
  driven.loop->post(burst);
  driven.start();
  EXPECT_TRUE(eventually([&] { return ran == 500; }));
  driven.stop();
  EXPECT_EQ(500U, driven.strategy->counts().tasks());
}

TEST(LoopProducer, RefusesATaskOverItsLimit) {
  assume_on_loop();
  auto loop = make_loop();
  LoopProducer producer(*loop, 1, nullptr);
  Known first, second;
  EXPECT_TRUE(producer.submit(lend(first)));
  EXPECT_FALSE(producer.submit(lend(second)));
  EXPECT_EQ(1, second.closes);
  run_task(producer.produce(), nullptr);
  EXPECT_EQ(1, first.runs);
}

TEST(LoopProducer, HandsOutWhatItCollectedBeforeItEnds) {
  Driven driven(1);
  std::atomic<int> ran{0};
  OnArrive burst([&] {
    assume_on_loop();
    for (int i = 0; i < 10; ++i) driven.producer.submit(make_task("late", [&] { ran.fetch_add(1); }));
    driven.producer.stop();
  });
  driven.loop->post(burst);
  driven.start();
  driven.producer.wait_until_stopped();
  EXPECT_TRUE(eventually([&] { return ran == 10; }));  // a thread may still hold one: a stopping pool would close it
  driven.reserve->stop();
  EXPECT_TRUE(driven.pool->stop(20s));
}

TEST(LoopProducer, TurnsOnAfterACallbackThatThrew) {
  Failures failures;
  Driven driven(1, StrategyMode::adaptive, &failures);
  OnArrive throws([] { throw std::runtime_error("of its own"); });
  Gate gate;
  OnArrive next([&] { gate.open(); });
  OnArrive throws_too([] { throw 1; });
  driven.loop->post(throws);
  driven.loop->post(throws_too);  // arrives in the same iteration
  driven.start();
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(failures.mutex);
    return failures.said.size() == 2;
  }));
  driven.loop->post(next);
  gate.pass();
  driven.stop();
  EXPECT_EQ("turn: of its own", failures.said[0]);
  EXPECT_EQ("turn: an exception of an unknown type", failures.said[1]);
}

// Timers, sockets and mail at once, with blocking tasks from each, so that libuv's and the loop's own state move too.
TEST(LoopProducer, KeepsTimersAndSocketsOverManyHandOvers) {
  Driven driven(2);
  Pair pair;
  std::uint64_t bytes = 0;
  int ticks = 0;
  Gate done;
  const auto busy = [&] {
    assume_on_loop();
    driven.producer.submit(make_task("busy", [] { std::this_thread::yield(); }));
  };
  OnReady reader([&](Ready) {
    char data[64];
    for (ssize_t received; (received = ::read(pair.near.get(), data, sizeof data)) > 0;)
      bytes += static_cast<std::uint64_t>(received);
    busy();
  });
  std::optional<OnTime> timer;
  timer.emplace(*driven.loop, [&] {
    pair.say("x");
    busy();
    if (++ticks == 200) return done.open();
    timer->timer.arm(driven.loop->now() + 100us);
  });
  WatchKey key;
  OnArrive begin([&] {
    assume_on_loop();
    auto watched = driven.loop->watch(pair.near.get(), reader);
    ASSERT_TRUE(watched);
    key = *watched;
    timer->timer.arm(driven.loop->now() + 100us);
  });
  driven.loop->post(begin);
  driven.start();
  done.pass();
  OnArrive last([&] { driven.producer.stop(); });
  driven.loop->post(last);
  driven.producer.wait_until_stopped();
  driven.reserve->stop();
  EXPECT_TRUE(driven.pool->stop(20s));
  assume_on_loop();
  driven.loop->unwatch(pair.near.get(), key);
  timer.reset();
  EXPECT_EQ(200, ticks);
  EXPECT_GT(bytes, 0U);
}

}  // namespace
}  // namespace carpool::exec
