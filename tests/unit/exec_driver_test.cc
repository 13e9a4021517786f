// Unit tests of make_driver(): a loop as a worker drives it: thread-local notes follow the loop, and existing tasks are
// counted.
#include "exec/uv/driver.h"

#include <optional>
#include <set>

#include "exec/reserved_threads.h"
#include "tests/unit/exec_support.h"
#include "tests/unit/exec_task_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

thread_local int whose = 0;  // as a worker's: the loop that this thread drives

struct Notes final : TurnHost {
  explicit Notes(int n) : number(n) {}
  void enter() override {
    EXPECT_EQ(0, whose) << "a thread turns one loop at a time";
    whose = number;
  }
  void leave() override {
    EXPECT_EQ(number, whose);
    whose = 0;
  }
  int number;
};

struct DriverFixture {
  explicit DriverFixture(unsigned loops, unsigned reserved, StrategyMode mode = StrategyMode::adaptive,
                         unsigned most = 100)
      : tasks(most), pool(options()), lease(pool.lease(loops)), source(pool, "loops", most + loops) {
    EXPECT_TRUE(pool.start());
    ReserveOptions kept;
    kept.capacity = reserved;
    reserve.emplace(pool, kept);
    for (unsigned i = 0; i < loops; ++i) {
      notes.push_back(std::make_unique<Notes>(static_cast<int>(i) + 1));
      all.push_back(make_loop());
      drivers.push_back(std::make_unique<Driver>(DriverParts{.loop = *all.back(),
                                                             .host = *notes.back(),
                                                             .name = "loop of the test",
                                                             .mode = mode,
                                                             .pool = pool,
                                                             .executor = source,
                                                             .helpers = reserved == 0 ? nullptr : &*reserve,
                                                             .tasks = tasks,
                                                             .failures = nullptr}));
    }
  }
  static ThreadPoolOptions options() {
    ThreadPoolOptions options;
    options.min = 0;
    options.max = 2;
    return options;
  }
  void start() {
    for (auto& driver : drivers) EXPECT_TRUE(driver->start());
  }
  void stop() {
    for (auto& driver : drivers) driver->stop();
    for (auto& driver : drivers) driver->wait_until_stopped();
    reserve->stop();
    EXPECT_TRUE(pool.stop(20s));
    for (auto& loop : all) loop->drain();
    EXPECT_EQ(0U, tasks.existing());
  }
  TaskLimit tasks;
  ThreadPool pool;
  ThreadPool::Lease lease;
  TaskSource source;
  std::optional<ReservedThreads> reserve;
  std::vector<std::unique_ptr<Notes>> notes;
  std::vector<std::unique_ptr<UvLoop>> all;
  std::vector<std::unique_ptr<Driver>> drivers;
};

TEST(ADriver, LetsTheNotesOfAThreadFollowTheLoop) {
  constexpr int kRounds = 500;
  DriverFixture fixture(2, 2);
  struct Actor final : Mail {
    void arrive() override LOOP_ONLY {
      EXPECT_EQ(number, whose);
      threads.insert(std::this_thread::get_id());
      driving = std::this_thread::get_id();
      if (--rounds == 0) return done.open();
      EXPECT_TRUE(fixture->drivers[static_cast<std::size_t>(number - 1)]->submit(make_task("blocks", [this] {
        EXPECT_EQ(0, whose) << "a task belongs to no loop";
        if (rounds % 50 == 1) wait_for_a_turn();
        fixture->all[static_cast<std::size_t>(number - 1)]->post(*this);
      })));
    }
    // Only another thread can drive the loop now.
    void wait_for_a_turn() {
      if (std::this_thread::get_id() == driving) ++consumed;
      const int before = turned.load();
      fixture->all[static_cast<std::size_t>(number - 1)]->post(knock);
      turned.wait(before, std::memory_order_acquire);
    }
    std::atomic<int> turned{0};
    OnArrive knock{[this] {
      turned.fetch_add(1, std::memory_order_release);
      turned.notify_all();
    }};
    DriverFixture* fixture = nullptr;
    int number = 0, rounds = kRounds;
    int consumed = 0;         // tasks that waited on the thread that had driven the loop
    std::thread::id driving;  // when the task was submitted
    std::set<std::thread::id> threads;
    Gate done;
  };
  Actor actors[2];
  for (int i = 0; i < 2; ++i) {
    actors[i].fixture = &fixture;
    actors[i].number = i + 1;
    fixture.all[static_cast<std::size_t>(i)]->post(actors[i]);
  }
  fixture.start();
  for (Actor& actor : actors) actor.done.pass();
  fixture.stop();
  StrategyCounts counts;
  for (auto& driver : fixture.drivers) counts += driver->counts();
  EXPECT_EQ(2U * (kRounds - 1), counts.tasks());
  if (actors[0].consumed + actors[1].consumed > 0) {  // else the thread pool ran each
    EXPECT_GT(counts.took_over, 0U);
  }
}

TEST(ADriver, RunsInEveryModeAndBlocksInOneOnly) {
  for (const StrategyMode mode : {StrategyMode::produce_consume, StrategyMode::produce_execute_consume,
                                  StrategyMode::execute_produce_consume, StrategyMode::adaptive}) {
    DriverFixture fixture(1, 1, mode);
    Gate gate, turned;
    OnArrive first([&] {
      assume_on_loop();
      EXPECT_TRUE(fixture.drivers[0]->submit(make_task("blocks", [&] { gate.pass(); })));
    });
    OnArrive second([&] { turned.open(); });
    fixture.all[0]->post(first);
    fixture.start();
    ASSERT_TRUE(eventually([&] { return fixture.drivers[0]->counts().tasks() == 1; }));
    fixture.all[0]->post(second);
    if (mode == StrategyMode::produce_consume) {
      EXPECT_FALSE(turned.is_open());  // only opening the gate lets it continue
    } else {
      EXPECT_TRUE(eventually([&] { return turned.is_open(); }));
    }
    gate.open();
    EXPECT_TRUE(eventually([&] { return turned.is_open(); }));
    fixture.stop();
  }
}

TEST(ADriver, RefusesATaskWhileTooManyExistWhereverTheyAre) {
  DriverFixture fixture(1, 0, StrategyMode::adaptive, 2);
  Gate gate;
  Known running(Invocation::blocking, [&] { gate.pass(); }), waiting, refused, later;
  OnArrive burst([&] {
    assume_on_loop();
    EXPECT_TRUE(fixture.drivers[0]->submit(lend(running)));
    EXPECT_TRUE(fixture.drivers[0]->submit(lend(waiting)));
    EXPECT_FALSE(fixture.drivers[0]->submit(lend(refused)));
  });
  fixture.all[0]->post(burst);
  fixture.start();
  EXPECT_TRUE(eventually([&] { return waiting.runs == 1; }));
  EXPECT_EQ(1, refused.closes);
  EXPECT_EQ(1U, fixture.tasks.refused());
  EXPECT_TRUE(eventually([&] { return fixture.tasks.existing() == 1; })) << "the one that runs still exists";
  OnArrive again([&] {
    assume_on_loop();
    EXPECT_TRUE(fixture.drivers[0]->submit(lend(later)));
  });
  fixture.all[0]->post(again);
  EXPECT_TRUE(eventually([&] { return later.runs == 1; }));
  gate.open();
  fixture.stop();
}

TEST(ADriver, IsNamedInADumpAsIsTheTaskThatItsOldThreadRuns) {
  DriverFixture fixture(1, 1);
  Gate gate;
  Known warm;
  TaskPtr first = lend(warm);
  ASSERT_TRUE(eventually([&] { return fixture.reserve->try_execute(first); }));
  ASSERT_TRUE(eventually([&] { return warm.runs == 1 && fixture.reserve->available() == 1; }));
  OnArrive burst([&] {
    assume_on_loop();
    fixture.drivers[0]->submit(make_task("what blocks", [&] { gate.pass(); }));
  });
  fixture.all[0]->post(burst);
  fixture.start();
  const auto somebody = [&](const char* what) {
    for (const ThreadInfo& thread : fixture.pool.dump()) {
      if (std::string_view(thread.activity) == what) return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually([&] { return somebody("what blocks") && somebody("loop of the test"); }));
  gate.open();
  fixture.stop();
}

TEST(ADriver, SaysThatThereIsNoThreadForIt) {
  DriverFixture fixture(1, 0);
  TaskPtr takes = make_task("takes the only leased place", [] {});
  Gate gate;
  TaskPtr holds = make_task("holds it", [&] { gate.pass(); });
  ASSERT_TRUE(fixture.pool.execute_leased(holds));
  EXPECT_FALSE(fixture.drivers[0]->start());
  gate.open();
  EXPECT_TRUE(fixture.pool.stop(20s));
}

TEST(ATaskLimit, IsLeftByATaskThatThrowsOrIsClosed) {
  TaskLimit limit(1);
  Failures failures;
  TaskPtr throws = make_task("throws", [] { throw std::runtime_error("of its own"); });
  ASSERT_TRUE(limit.admit(*throws));
  TaskPtr over = make_task("over", [] {});
  EXPECT_FALSE(limit.admit(*over));
  run_task(std::move(throws), &failures);
  EXPECT_EQ(0U, limit.existing());
  ASSERT_TRUE(limit.admit(*over));
  over.reset();
  EXPECT_EQ(0U, limit.existing());
}

}  // namespace
}  // namespace carpool::exec
