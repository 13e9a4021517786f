// Unit tests of ThreadPool: when jobs run, when threads leave, and that no job is lost at start and stop.
#include "exec/thread_pool.h"

#include <sys/resource.h>

#include <stdexcept>

#include "exec/reserved_threads_size.h"
#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

// A started pool with one source; stopped at the end, when every gate of the test is open.
struct Pool {
  explicit Pool(ThreadPoolOptions options = {}) : pool(options) { EXPECT_TRUE(pool.start()); }
  ~Pool() { EXPECT_TRUE(pool.stop(20s)); }
  template <class Work>
  bool run(Work work) {
    return source.execute(make_task("work", std::move(work)));
  }
  ThreadCounts counts() const { return pool.counts(); }
  ThreadPool pool;
  TaskSource source{pool, "test", 100'000};
};

constexpr ThreadPoolOptions sized(unsigned min, unsigned max) {
  ThreadPoolOptions options;
  options.min = min;
  options.max = max;
  return options;
}

TEST(ThreadPool, StartsItsMinimumAndNoMore) {
  Pool pool(sized(3, 8));
  EXPECT_TRUE(eventually([&] { return pool.counts().idle == 3; }));
  EXPECT_EQ(3U, pool.counts().threads);
  EXPECT_EQ(3U, pool.counts().started);
}

TEST(ThreadPool, StartsAThreadOnlyWhenNoneIsIdle) {
  Gate gate;
  Pool pool(sized(1, 3));
  EXPECT_TRUE(eventually([&] { return pool.counts().idle == 1; }));
  EXPECT_TRUE(pool.run([&] { gate.pass(); }));
  EXPECT_EQ(1U, pool.counts().threads);
  EXPECT_TRUE(pool.run([&] { gate.pass(); }));
  EXPECT_TRUE(eventually([&] { return pool.counts().threads == 2; }));
  gate.open();
}

TEST(ThreadPool, QueuesBeyondItsMaximumAndRefusesNothing) {
  Gate gate;
  std::atomic<int> ran{0};
  Pool pool(sized(0, 2));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_TRUE(pool.run([&] {
      gate.pass();
      ran.fetch_add(1);
    }));
  }
  EXPECT_TRUE(eventually([&] { return pool.counts().busy == 2; }));
  EXPECT_EQ(2U, pool.counts().threads);
  EXPECT_EQ(4998U, pool.counts().queue);
  gate.open();
  EXPECT_TRUE(eventually([&] { return ran == 5000; }));
  EXPECT_TRUE(eventually([&] { return pool.counts().busy == 0; }));
  EXPECT_EQ(5000U, pool.pool.queue_wait().count());
}

TEST(ThreadPool, RunsItsQueueInOrder) {
  Gate gate;
  std::vector<int> order;
  {
    Pool pool(sized(1, 1));
    pool.run([&] { gate.pass(); });
    for (int i = 0; i < 100; ++i) pool.run([&order, i] { order.push_back(i); });
    gate.open();
  }
  ASSERT_EQ(100U, order.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(i, order[static_cast<std::size_t>(i)]);
}

TEST(ThreadPool, LosesNoThreadToAJobThatThrows) {
  Failures failures;
  auto options = sized(1, 1);
  options.failures = &failures;
  std::atomic<int> ran{0};
  Pool pool(options);
  for (int i = 0; i < 100; ++i) {
    pool.run([&, i] {
      ran.fetch_add(1);
      if (i % 2 == 0) throw std::runtime_error("of its own");
    });
  }
  EXPECT_TRUE(eventually([&] { return ran == 100 && pool.counts().idle == 1; }));
  EXPECT_EQ(1U, pool.counts().started);
  EXPECT_EQ(50U, pool.counts().failed_jobs);
  EXPECT_EQ(50U, failures.said.size());
}

TEST(ThreadPool, CarriesNoPromiseFromOneJobToTheNext) {
  bool promised = true;
  {
    Pool pool(sized(1, 1));
    pool.run([] {
      const NonBlockingCall promise;
      throw 1;
    });
    pool.run([&] { promised = NonBlockingCall::active(); });
  }
  EXPECT_FALSE(promised);
}

TEST(ThreadPool, RefusesASourceOverItsLimitAndNoOther) {
  Gate gate;
  Pool pool(sized(1, 1));
  pool.run([&] { gate.pass(); });
  TaskSource small(pool.pool, "small", 2);
  Known tasks[3];
  EXPECT_TRUE(small.execute(lend(tasks[0])));
  EXPECT_TRUE(small.execute(lend(tasks[1])));
  EXPECT_FALSE(small.execute(lend(tasks[2])));
  EXPECT_EQ(1, tasks[2].closes);
  EXPECT_EQ(1U, small.refused());
  EXPECT_TRUE(pool.run([] {}));
  EXPECT_EQ(100'002U, pool.counts().queue_limit) << "the bound of the queue is the sum";
  gate.open();
  EXPECT_TRUE(eventually([&] { return tasks[1].runs == 1; }));
}

TEST(ThreadPool, IsLowOnThreadsOnlyWhileItIs) {
  Gate gate;
  auto options = sized(0, 4);
  options.low_threads = 1;
  Pool pool(options);
  EXPECT_FALSE(pool.counts().low_on_threads);
  for (int i = 0; i < 3; ++i) pool.run([&] { gate.pass(); });
  EXPECT_TRUE(pool.counts().low_on_threads);
  gate.open();
  EXPECT_TRUE(eventually([&] { return !pool.counts().low_on_threads; })) << "the state is left again";
}

TEST(ThreadPool, RunsLoopsOnTopOfItsMaximumOnAnyMachine) {
  for (const unsigned cores : {1U, 2U, 64U}) {
    Gate gate;
    std::atomic<unsigned> loops{0};
    std::atomic<int> jobs{0};
    Pool pool(sized(0, 1));
    const unsigned reserved = reserve_size(-1, cores, 1);
    auto lease = pool.pool.lease(cores + reserved);
    for (unsigned i = 0; i < cores; ++i) {
      TaskPtr loop = make_task("loop", [&] {
        loops.fetch_add(1);
        gate.pass();
      });
      EXPECT_TRUE(pool.pool.execute_leased(loop));
    }
    EXPECT_TRUE(eventually([&] { return loops == cores; }));
    pool.run([&] { jobs.fetch_add(1); });
    EXPECT_TRUE(eventually([&] { return jobs == 1; })) << "max is for jobs alone";
    EXPECT_EQ(cores, pool.counts().leased);
    gate.open();
    EXPECT_TRUE(eventually([&] { return pool.counts().leased == 0; }));
  }
}

TEST(ThreadPool, GivesALeasedPlaceAtOnceOrNever) {
  Gate gate;
  Pool pool(sized(0, 1));
  auto lease = pool.pool.lease(1);
  TaskPtr first = make_task("first", [&] { gate.pass(); });
  TaskPtr second = make_task("second", [] {});
  EXPECT_TRUE(pool.pool.execute_leased(first));
  EXPECT_FALSE(pool.pool.execute_leased(second));
  EXPECT_NE(nullptr, second) << "still the caller's";
  EXPECT_EQ(0U, pool.counts().queue);
  gate.open();
  EXPECT_TRUE(eventually([&] { return pool.counts().leased == 0; }));
  EXPECT_TRUE(pool.pool.execute_leased(second));
  EXPECT_TRUE(eventually([&] { return pool.counts().leased == 0; }));
}

TEST(ThreadPool, NeverLendsALeasedPlaceToAJob) {
  Gate gate;
  std::atomic<int> inside{0}, most{0};
  Pool pool(sized(2, 2));
  auto lease = pool.pool.lease(4);
  // Leased work has ended: its threads are idle now, and there are more of them than max.
  for (int i = 0; i < 4; ++i) {
    TaskPtr task = make_task("leased", [&] { gate.pass(); });
    EXPECT_TRUE(pool.pool.execute_leased(task));
  }
  gate.open();
  EXPECT_TRUE(eventually([&] { return pool.counts().leased == 0; }));
  for (int i = 0; i < 200; ++i) {
    pool.run([&] {
      const int now = inside.fetch_add(1) + 1;
      int before = most.load();
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      std::this_thread::yield();
      inside.fetch_sub(1);
    });
  }
  EXPECT_TRUE(eventually([&] { return pool.counts().busy == 0 && pool.counts().queue == 0; }));
  EXPECT_LE(most.load(), 2);
}

TEST(ThreadPool, ShrinksFromASpikeToItsMinimum) {
  Gate gate;
  auto options = sized(2, 16);
  options.idle_timeout = 20ms;
  options.max_evict_count = 14;
  Pool pool(options);
  for (int i = 0; i < 16; ++i) pool.run([&] { gate.pass(); });
  EXPECT_TRUE(eventually([&] { return pool.counts().busy == 16; }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return pool.counts().threads == 2; }));
  EXPECT_EQ(14U, pool.counts().evicted);
  EXPECT_TRUE(pool.run([] {}));
}

// The other setting: one thread at a time, one per idle timeout.
TEST(ThreadPool, ShrinksOneByOneWhenOnlyOneMayLeavePerIdleTimeout) {
  Gate gate;
  auto options = sized(2, 16);
  options.idle_timeout = 10ms;
  options.max_evict_count = 1;
  Pool pool(options);
  for (int i = 0; i < 16; ++i) pool.run([&] { gate.pass(); });
  EXPECT_TRUE(eventually([&] { return pool.counts().busy == 16; }));
  const Instant begin = Clock::now();
  gate.open();
  EXPECT_TRUE(eventually([&] { return pool.counts().threads == 2; }));
  EXPECT_GE(Clock::now() - begin, 14 * options.idle_timeout) << "and none of the fourteen before its time";
  EXPECT_EQ(14U, pool.counts().evicted);
}

TEST(ThreadPool, ShrinksToNothingAndGrowsAgain) {
  auto options = sized(0, 4);
  options.idle_timeout = 2ms;
  options.max_evict_count = 4;
  Pool pool(options);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> ran{false};
    EXPECT_TRUE(pool.run([&] { ran = true; }));
    EXPECT_TRUE(eventually([&] { return ran && pool.counts().threads == 0; }));
  }
}

// Jobs arrive just as the last idle thread ends.
TEST(ThreadPool, LosesNoJobToAThreadThatIsLeaving) {
  auto options = sized(0, 2);
  options.idle_timeout = 50us;
  options.max_evict_count = 1000;
  std::atomic<int> ran{0};
  Pool pool(options);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_TRUE(pool.run([&] { ran.fetch_add(1); }));
    if (i % 4 == 0) {
      EXPECT_TRUE(eventually([&] { return ran == i + 1; }));
    }
  }
  EXPECT_TRUE(eventually([&] { return ran == 2000; }));
}

TEST(ThreadPool, KeepsItsThreadsWhenTheIdleTimeoutIsZero) {
  Gate gate;
  auto options = sized(0, 4);
  options.idle_timeout = Duration::zero();
  Pool pool(options);
  for (int i = 0; i < 4; ++i) pool.run([&] { gate.pass(); });
  EXPECT_TRUE(eventually([&] { return pool.counts().busy == 4; }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return pool.counts().idle == 4; }));
  EXPECT_EQ(0U, pool.counts().evicted);
}

TEST(ThreadPool, RunsQueuedJobsWhenItsMaximumIsRaised) {
  Gate gate;
  std::atomic<int> inside{0};
  Pool pool(sized(0, 1));
  for (int i = 0; i < 3; ++i) {
    pool.run([&] {
      inside.fetch_add(1);
      gate.pass();
    });
  }
  EXPECT_EQ(2U, pool.counts().queue);
  ASSERT_TRUE(eventually([&] { return inside == 1; }))
      << "a thread that is only called looks for more jobs when it comes";
  pool.pool.resize(0, 3);
  EXPECT_TRUE(eventually([&] { return inside == 3; }));
  gate.open();
}

TEST(ThreadPool, RunsQueuedTasksWhenItStopsInTime) {
  Gate gate;
  std::atomic<int> ran{0};
  ThreadPool pool(sized(1, 1));
  ASSERT_TRUE(pool.start());
  TaskSource source(pool, "test", 100);
  source.execute(make_task("first", [&] { gate.pass(); }));
  for (int i = 0; i < 10; ++i) source.execute(make_task("job", [&] { ran.fetch_add(1); }));
  gate.open();
  EXPECT_TRUE(pool.stop(20s));
  EXPECT_EQ(10, ran);
  Known late;
  EXPECT_FALSE(source.execute(lend(late)));
  EXPECT_EQ(1, late.closes);
}

TEST(ThreadPool, ClosesQueuedTasksAndWaitsForRunningOnesWhenItStopsLate) {
  Known queued;
  ThreadPool pool(sized(1, 1));
  ASSERT_TRUE(pool.start());
  TaskSource source(pool, "test", 100);
  std::atomic<bool> inside{false};
  source.execute(make_task("long", [&] {
    inside = true;
    while (queued.closes == 0) std::this_thread::yield();
  }));
  source.execute(lend(queued));
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  EXPECT_TRUE(pool.stop(2s)) << "it ended in the second half";
  EXPECT_EQ(1, queued.closes);
  EXPECT_EQ(0, queued.runs);
}

TEST(ThreadPool, StopsInBoundedTimeAlthoughATaskNeverEnds) {
  Gate gate;
  ThreadPool pool(sized(1, 1));
  ASSERT_TRUE(pool.start());
  TaskSource source(pool, "test", 100);
  std::atomic<bool> inside{false};
  source.execute(make_task("uninterruptible", [&] {
    inside = true;
    gate.pass();
  }));
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  EXPECT_FALSE(pool.stop(10ms));
  const auto dump = pool.dump();
  ASSERT_EQ(1U, dump.size()) << "and says who it is";
  EXPECT_STREQ("uninterruptible", dump[0].activity);
  gate.open();
  EXPECT_TRUE(pool.stop(20s));
}

TEST(ThreadPool, StopsFromOneOfItsOwnThreads) {
  std::atomic<int> result{-1};
  {
    ThreadPool pool(sized(4, 4));
    ASSERT_TRUE(pool.start());
    TaskSource source(pool, "test", 100);
    source.execute(make_task("stops", [&] { result = pool.stop(20s) ? 1 : 0; }));
    EXPECT_TRUE(eventually([&] { return result == 1; }));
  }
}

TEST(ThreadPool, StartsAndStopsUnderLoadWithoutLosingATask) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ran{0}, closed{0};
    struct Counted final : Task {
      Counted(std::atomic<int>& r, std::atomic<int>& c) : ran(r), closed(c) {}
      const char* name() const override { return "counted"; }
      void run() override { ran.fetch_add(1); }
      void close() override { closed.fetch_add(1); }
      std::atomic<int>&ran, &closed;
    };
    std::deque<Counted> tasks;
    for (int i = 0; i < 100; ++i) tasks.emplace_back(ran, closed);
    ThreadPool pool(sized(0, 3));
    ASSERT_TRUE(pool.start());
    TaskSource source(pool, "test", 100);
    std::thread sender([&] {
      for (Counted& task : tasks) source.execute(lend(task));
    });
    std::this_thread::yield();
    pool.stop(round % 2 == 0 ? Duration::zero() : Duration(1ms));
    sender.join();
    pool.stop(20s);
    EXPECT_EQ(100, ran + closed);
  }
}

TEST(ThreadPool, ReportsTheTaskOfEveryThreadAndItsStart) {
  Gate gate;
  Pool pool(sized(2, 2));
  auto lease = pool.pool.lease(1);
  std::atomic<int> inside{0};
  TaskPtr loop = make_task("loop", [&] {
    const ThreadPool::ScopedActivity activity("turning");
    inside.fetch_add(1);
    gate.pass();
  });
  EXPECT_TRUE(pool.pool.execute_leased(loop));
  const Instant before = Clock::now();
  pool.run([&] {
    inside.fetch_add(1);
    gate.pass();
  });
  EXPECT_TRUE(eventually([&] { return inside == 2; }));
  int idle = 0, busy = 0, leased = 0;
  for (const ThreadInfo& thread : pool.pool.dump()) {
    using State = ThreadInfo::State;
    if (thread.state == State::busy) {
      ++busy;
      EXPECT_STREQ("work", thread.activity);
      EXPECT_GE(thread.since, before);
    }
    if (thread.state == State::leased) {
      ++leased;
      EXPECT_STREQ("turning", thread.activity);
    }
    if (thread.state == State::idle) ++idle;
  }
  EXPECT_EQ(1, busy);
  EXPECT_EQ(1, leased);
  EXPECT_LE(idle, 1);
  gate.open();
}

TEST(ThreadPool, MayBeDumpedFromInsideItself) {
  Gate done;
  Pool pool(sized(1, 1));
  pool.run([&] {
    EXPECT_EQ(1U, pool.pool.dump().size());
    EXPECT_EQ(1U, pool.counts().busy);
    done.open();
  });
  done.pass();
}

TEST(ThreadPool, GivesItsThreadsTheStackTheyWereAskedFor) {
  std::atomic<std::size_t> size{0};
  auto options = sized(1, 1);
  options.stack_size = std::size_t{512} * 1024;
  {
    Pool pool(options);
    pool.run([&] {
      pthread_attr_t attributes;
      ASSERT_EQ(0, ::pthread_getattr_np(::pthread_self(), &attributes));
      std::size_t stack_size = 0;
      void* address = nullptr;
      ASSERT_EQ(0, ::pthread_attr_getstack(&attributes, &address, &stack_size));
      ::pthread_attr_destroy(&attributes);
      size = stack_size;
    });
  }
  EXPECT_GE(size, std::size_t{512} * 1024);
  EXPECT_LT(size, std::size_t{2048} * 1024);
}

// Thread creation fails from the n-th on.
int starts_left = 0;
int start_some(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*), void* argument) {
  return starts_left-- > 0 ? ::pthread_create(thread, attributes, entry, argument) : EAGAIN;
}

TEST(ThreadPool, SaysThatItCannotStartAndLeavesNoThread) {
  for (int n = 0; n < 4; ++n) {
    auto options = sized(4, 4);
    options.start = start_some;
    starts_left = n;
    ThreadPool pool(options);
    EXPECT_FALSE(pool.start());
    EXPECT_EQ(0U, pool.counts().threads);
    EXPECT_EQ(1U, pool.counts().start_failures);
  }
}

TEST(ThreadPool, RunsEveryTaskItTookWhicheverThreadCouldNotBeStarted) {
  for (int n = 0; n < 5; ++n) {
    Gate gate;
    auto options = sized(0, 4);
    options.start = start_some;
    starts_left = n;
    std::deque<Known> tasks;
    int taken = 0;
    {
      Pool pool(options);
      for (int i = 0; i < 6; ++i) {
        tasks.emplace_back(Invocation::blocking, [&] { gate.pass(); });
        taken += pool.source.execute(lend(tasks.back())) ? 1 : 0;
      }
      EXPECT_EQ(n == 0 ? 0 : 6, taken) << "with no thread at all it says no, else it queues";
      EXPECT_TRUE(eventually([&] { return pool.counts().busy == static_cast<unsigned>(std::min(n, 4)); }));
      EXPECT_EQ(static_cast<unsigned>(std::min(n, 4)), pool.counts().threads);
      gate.open();
    }
    for (const Known& task : tasks) EXPECT_EQ(1, task.runs + task.closes);
  }
}

}  // namespace
}  // namespace carpool::exec
