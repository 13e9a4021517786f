// Unit tests of UvLoop: input that is ready precedes timers that are due, also after a process was stopped for a while.
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/exec_support.h"

#ifndef __SANITIZE_THREAD__  // ThreadSanitizer needs its own
namespace {
void (*after_epoll_wait)() = nullptr;  // called once, when a wait has ended with an event
}
extern "C" int epoll_wait(int fd, epoll_event* events, int most, int ms) {
  const auto found = static_cast<int>(::syscall(SYS_epoll_pwait, fd, events, most, ms, nullptr, 0));
  if (found > 0 && after_epoll_wait != nullptr) std::exchange(after_epoll_wait, nullptr)();
  return found;
}
#endif

namespace carpool::exec {
namespace {

using namespace testing;

// Stop: a stop of the process, as a waiting loop sees it. Input arrives, a timer becomes due, and a signal ends the
// wait.
struct Stop {
  static void happen(int) {
    assume_on_loop();
    std::exchange(input, nullptr)->say("x");
    std::exchange(timer, nullptr)->arm(Clock::now());
  }
  static inline const Pair* input = nullptr;
  static inline Timer* timer = nullptr;
};

// Returns true if the thread sleeps. A loop does so only while it waits for events.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string id, name, state;
  return file >> id >> name >> state && state == "S";
}

TEST(ALoopWhoseProcessWasStopped, TakesInputBeforeTheTimersThatWereDueInTheMeantime) {
  assume_on_loop();
  auto loop = make_loop();
  const Pair pair;
  std::vector<std::string> order;
  OnReady watcher([&](Ready ready) {
    if (ready.readable) order.emplace_back("input");
  });
  ASSERT_TRUE(loop->watch(pair.near.get(), watcher));
  loop->turn(false);
  OnTime limit(*loop, [&] { order.emplace_back("timer"); });
  limit.timer.arm(Clock::now() + 20s);
  Stop::input = &pair;
  Stop::timer = &limit.timer;
  struct sigaction action {};
  action.sa_handler = Stop::happen;
  struct sigaction before {};
  ASSERT_EQ(0, ::sigaction(SIGUSR2, &action, &before));
  std::atomic<bool> waits{false};
  std::thread other([&waits, loop_thread = ::pthread_self(), id = ::gettid()] {
    while (!waits.load() || !sleeps(id)) std::this_thread::yield();
    ::pthread_kill(loop_thread, SIGUSR2);
  });
  waits.store(true);
  loop->turn(true);
  other.join();
  ::sigaction(SIGUSR2, &before, nullptr);
  EXPECT_EQ(order, (std::vector<std::string>{"input", "timer"}));
}

#ifndef __SANITIZE_THREAD__
// The processor is busy elsewhere between the end of the wait and the turn that it begins.
TEST(ALoopWhoseThreadIsLateAfterItsWait, TakesInputBeforeTheTimersThatWereDueInTheMeantime) {
  assume_on_loop();
  auto loop = make_loop();
  const Pair pair, other;
  std::vector<std::string> order;
  OnReady watcher([&](Ready ready) {
    if (ready.readable) order.emplace_back("input");
  });
  OnReady event([](Ready) {});
  ASSERT_TRUE(loop->watch(pair.near.get(), watcher));
  ASSERT_TRUE(loop->watch(other.near.get(), event));
  loop->turn(false);
  OnTime limit(*loop, [&] { order.emplace_back("timer"); });
  limit.timer.arm(Clock::now() + 20s);
  Stop::input = &pair;
  Stop::timer = &limit.timer;
  other.say("x");
  after_epoll_wait = [] { Stop::happen(0); };
  turn_until(*loop, [&] { return !limit.timer.armed(); });
  EXPECT_EQ(order, (std::vector<std::string>{"input", "timer"}));
}
#endif

TEST(ALoopWithMoreEventsThanOneTurnTakes, RunsNoDueTimerBeforeTheRest) {
  assume_on_loop();
  auto loop = make_loop();
  constexpr int kMany = 600;
  std::vector<Pair> pairs(kMany);
  int told = 0, told_before = 0;
  Instant ran;
  OnReady watcher([&](Ready ready) { told += ready.readable ? 1 : 0; });
  for (const Pair& pair : pairs) {
    pair.say("x");
    ASSERT_TRUE(loop->watch(pair.near.get(), watcher));
  }
  OnTime limit(*loop, [&] {
    told_before = told;
    ran = Clock::now();
  });
  limit.timer.arm(loop->now());
  const Instant begin = Clock::now();
  turn_until(*loop, [&] { return !limit.timer.armed(); });
  // Timers wait for 100 ms at most, and a thread may be without a processor for as long.
  EXPECT_TRUE(told_before == kMany || ran - begin >= 100ms) << told_before;
}

TEST(ALoopThatAlwaysHasMoreEvents, RunsItsTimersAllTheSame) {
  assume_on_loop();
  auto loop = make_loop();
  std::vector<Pair> pairs(512);
  std::vector<std::unique_ptr<OnReady>> watchers;
  for (const Pair& pair : pairs) {
    watchers.push_back(std::make_unique<OnReady>([&pair](Ready) { pair.say("x"); }));
    ASSERT_TRUE(loop->watch(pair.near.get(), *watchers.back()));
  }
  OnTime limit(*loop, [] {});
  limit.timer.arm(loop->now());
  const Instant end = Clock::now() + 10s;
  while (limit.timer.armed() && Clock::now() < end) loop->turn(false);
  EXPECT_FALSE(limit.timer.armed());
}

}  // namespace
}  // namespace carpool::exec
