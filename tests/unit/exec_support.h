// exec_support.h: helpers of the exec tests: loops that are known to open, socket pairs, and loop actors as lambdas.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "exec/uv/loop.h"

namespace carpool::exec::testing {

using namespace std::chrono_literals;

inline std::unique_ptr<UvLoop> make_loop(LoopId id = 0) {
  auto loop = UvLoop::make(id);
  EXPECT_TRUE(loop) << (loop ? "" : loop.fault().detail);
  return std::move(*loop);
}

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    near.reset(fds[0]);
    far.reset(fds[1]);
  }
  void say(std::string_view text) const {
    EXPECT_EQ(static_cast<ssize_t>(text.size()), ::write(far.get(), text.data(), text.size()));
  }
  Fd near, far;
};

struct OnReady final : Watcher {
  explicit OnReady(std::function<void(Ready)> f) : call(std::move(f)) {}
  void on_ready(Ready ready) override { call(ready); }
  std::function<void(Ready)> call;
};

struct OnRun final : Deferred {
  explicit OnRun(std::function<void()> f) : call(std::move(f)) {}
  void run() override { call(); }
  std::function<void()> call;
};

struct OnArrive final : Mail {
  explicit OnArrive(std::function<void()> f) : call(std::move(f)) {}
  void arrive() override { call(); }
  std::function<void()> call;
};

struct OnTime {
  OnTime(Loop& loop, std::function<void()> f) : call(std::move(f)), timer(Timer::bind<&OnTime::fire>(loop, *this)) {}
  void fire() { call(); }
  std::function<void()> call;
  Timer timer;
};

// A loop on its own thread until the end of the scope.
struct Running {
  explicit Running(UvLoop& l) : loop(l), thread([&l] { l.run(); }) {}
  ~Running() {
    loop.stop();
    thread.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  UvLoop& loop;
  std::thread thread;
};

// Runs `loop` until `done`, or fails after a timeout far beyond any reasonable delay.
template <class Done>
void turn_until(UvLoop& loop, Done done) {
  OnTime deadline(loop, [] {});
  deadline.timer.arm(Clock::now() + 20s);
  while (!done()) {
    ASSERT_TRUE(deadline.timer.armed()) << "it never happened";
    loop.turn(true);
  }
}

}  // namespace carpool::exec::testing
