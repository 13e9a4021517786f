// Unit tests of the timer heap against a slow multimap, and of timers changed in callbacks.
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "exec/timer_heap.h"
#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using namespace std::chrono_literals;

// A minimal Loop that carries timers at a time chosen by the test.
class HeapLoop final : public Loop {
 public:
  LoopId id() const override { return 0; }
  Instant now() const override { return time; }
  void arm(Timer& timer, Instant deadline) override {
    ++arms;
    heap.arm(timer, deadline);
  }
  void disarm(Timer& timer) override { heap.remove(timer); }
  void defer(Deferred& /*work*/) override {}
  void post(Mail& /*mail*/) override {}
  Result<WatchKey> watch(int /*fd*/, Watcher& /*watcher*/) override { return WatchKey{}; }
  void unwatch(int /*fd*/, WatchKey /*key*/) override {}
  Status watch_shared(int /*fd*/, std::uint32_t /*index*/, std::uint32_t /*generation*/) override { return Done{}; }
  void unwatch_shared(int /*fd*/) override {}
  void set_shared_watcher(SharedWatcher* /*watcher*/) override {}
  std::span<char> scratch() override { return {}; }

  void advance(Duration by) {
    time += by;
    heap.run_due(time);
  }

  TimerHeap heap;
  Instant time{};
  int arms = 0;
};

using testing::OnTime;

TEST(Timer, FiresOnceAtItsDeadline) {
  HeapLoop loop;
  int fired = 0;
  OnTime timer(loop, [&] { ++fired; });
  timer.timer.arm(loop.time + 10ms);
  loop.advance(9ms);
  EXPECT_EQ(0, fired);
  loop.advance(1ms);
  EXPECT_EQ(1, fired);
  EXPECT_FALSE(timer.timer.armed());
  loop.advance(1h);
  EXPECT_EQ(1, fired);
}

TEST(Timer, MovesLaterWithoutTouchingTheHeap) {
  HeapLoop loop;
  int fired = 0;
  OnTime timer(loop, [&] { ++fired; });
  for (int i = 1; i <= 1000; ++i) timer.timer.arm(loop.time + i * 1ms);
  EXPECT_EQ(1, loop.arms);
  EXPECT_EQ(loop.time + 1ms, loop.heap.next());
  loop.advance(999ms);
  EXPECT_EQ(0, fired);
  EXPECT_EQ(Instant{} + 1000ms, loop.heap.next());
  loop.advance(1ms);
  EXPECT_EQ(1, fired);
}

TEST(Timer, MovesEarlier) {
  HeapLoop loop;
  int fired = 0;
  OnTime timer(loop, [&] { ++fired; });
  timer.timer.arm(loop.time + 1h);
  timer.timer.arm(loop.time + 1ms);
  loop.advance(1ms);
  EXPECT_EQ(1, fired);
}

TEST(Timer, StaysSilentWhenDisarmedAndFiresWhenArmedAgain) {
  HeapLoop loop;
  int fired = 0;
  OnTime timer(loop, [&] { ++fired; });
  timer.timer.arm(loop.time + 10ms);
  timer.timer.disarm();
  EXPECT_FALSE(timer.timer.armed());
  timer.timer.arm(loop.time + 20ms);
  loop.advance(10ms);
  timer.timer.arm(kNever);
  loop.advance(1h);
  EXPECT_EQ(0, fired);
  EXPECT_EQ(0U, loop.heap.size());
  timer.timer.arm(loop.time + 1ms);
  loop.advance(1ms);
  EXPECT_EQ(1, fired);
}

TEST(Timer, LeavesTheHeapWhenItDies) {
  HeapLoop loop;
  {
    OnTime timer(loop, [] { FAIL(); });
    timer.timer.arm(loop.time + 1ms);
    OnTime idle(loop, [] { FAIL(); });
    idle.timer.arm(loop.time + 1ms);
    idle.timer.disarm();
  }
  EXPECT_EQ(0U, loop.heap.size());
  loop.advance(1h);
}

TEST(Timer, MayOutliveItsHeap) {
  HeapLoop loop;
  auto heap = std::make_unique<TimerHeap>();
  Timer timer(loop, Bound());
  heap->arm(timer, loop.time + 1ms);
  heap.reset();
  EXPECT_FALSE(timer.armed());
}

TEST(Timer, ThatIsArmedForThePastByItsCallbackWaitsForTheNextRun) {
  HeapLoop loop;
  int fired = 0;
  OnTime* self = nullptr;
  OnTime timer(loop, [&] {
    ++fired;
    self->timer.arm(loop.time - 1ms);
  });
  self = &timer;
  timer.timer.arm(loop.time);
  loop.advance(0ms);
  EXPECT_EQ(1, fired);
  loop.advance(1ns);
  EXPECT_EQ(2, fired);
}

TEST(Timer, ThatThrowsCostsNoOtherTimerItsRun) {
  HeapLoop loop;
  int fired = 0;
  OnTime throws(loop, [] { throw std::runtime_error("of its own"); });
  OnTime other(loop, [&] { ++fired; });
  throws.timer.arm(loop.time + 1ms);
  other.timer.arm(loop.time + 2ms);
  EXPECT_THROW(loop.advance(2ms), std::runtime_error);
  EXPECT_EQ(1, fired) << "in the same run";
  throws.timer.arm(loop.time + 1ms);
  other.timer.arm(loop.time + 1ms);
  EXPECT_THROW(loop.advance(1ms), std::runtime_error);
  EXPECT_EQ(2, fired) << "and the heap runs on";
}

TEST(Timer, MayBeDestroyedByItsOwnCallbackAndByAnothers) {
  HeapLoop loop;
  std::vector<std::unique_ptr<OnTime>> timers(3);
  int fired = 0;
  for (auto& timer : timers) {
    timer = std::make_unique<OnTime>(loop, [&] {
      ++fired;
      for (auto& other : timers) {
        auto last = std::move(other);  // destroys this lambda: none of its captures may be used afterwards
        if (last == nullptr) continue;
        last->timer.disarm();
      }
    });
  }
  // The running lambda destroys all three; keeps its captures alive until it returns.
  std::function<void()> keep = timers[0]->call;
  for (auto& timer : timers) timer->call = [&keep] { keep(); };
  for (auto& timer : timers) timer->timer.arm(loop.time + 1ms);
  loop.advance(1ms);
  EXPECT_EQ(1, fired);
  EXPECT_EQ(0U, loop.heap.size());
}

// Random operations; at each step the same timers fire in the same order as in the multimap.
TEST(Timer, AgreesWithAMultimapWhateverIsDone) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    HeapLoop loop;
    std::multimap<Instant, int> oracle;
    std::vector<Instant> fired_at;
    std::vector<int> fired;
    constexpr int kTimers = 200;
    std::deque<std::unique_ptr<OnTime>> timers(kTimers);
    const auto forget = [&](int i) { std::erase_if(oracle, [&](const auto& entry) { return entry.second == i; }); };
    const auto make = [&](int i) {
      timers[static_cast<std::size_t>(i)] = std::make_unique<OnTime>(loop, [&fired, i] { fired.push_back(i); });
    };
    for (int i = 0; i < kTimers; ++i) make(i);
    for (int step = 0; step < 5000; ++step) {
      const int i = below(kTimers);
      Timer& timer = timers[static_cast<std::size_t>(i)]->timer;
      const int what = below(10);
      if (what < 6) {
        forget(i);
        // Distinct deadlines: the order of equal ones is unspecified.
        const Instant deadline = loop.time + below(1000) * 1us + Duration(step % 1000);
        timer.arm(deadline);
        oracle.emplace(deadline, i);
      } else if (what == 6) {
        forget(i);
        timer.disarm();
      } else if (what == 7) {
        forget(i);
        make(i);
      } else {
        fired.clear();
        loop.advance(below(100) * 1us);
        std::vector<int> expected;
        while (!oracle.empty() && oracle.begin()->first <= loop.time) {
          expected.push_back(oracle.begin()->second);
          oracle.erase(oracle.begin());
        }
        ASSERT_EQ(expected, fired) << "seed " << seed << " step " << step;
      }
      ASSERT_TRUE(oracle.empty() || loop.heap.next() <= oracle.begin()->first);
      ASSERT_EQ(timers[static_cast<std::size_t>(i)]->timer.armed(),
                std::any_of(oracle.begin(), oracle.end(), [&](const auto& entry) { return entry.second == i; }));
    }
  }
}

}  // namespace
}  // namespace carpool::exec
