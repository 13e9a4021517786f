// Unit tests of UvLoop on real sockets: readiness, stale events, fairness, time, idleness.
#include "exec/read_buffer.h"
#include "exec/uv/loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <ctime>

#include <cstring>
#include <deque>
#include <stdexcept>
#include <vector>

#include "exec/uv/include.h"
#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

TEST(UvLoop, ReportsReadinessAndHangup) {
  assume_on_loop();
  auto loop = make_loop();
  Pair pair;
  Ready last;
  int events = 0;
  OnReady watcher([&](Ready ready) {
    last = ready;
    ++events;
  });
  auto key = loop->watch(pair.near.get(), watcher);
  ASSERT_TRUE(key);
  loop->turn(true);
  EXPECT_TRUE(last.writable && !last.readable && !last.hangup) << "the readiness that stands already";
  pair.say("hello");
  loop->turn(true);
  EXPECT_TRUE(last.readable && !last.hangup);
  pair.far.reset();
  loop->turn(true);
  EXPECT_TRUE(last.hangup);
  EXPECT_EQ(3, events);
  loop->turn(false);
  EXPECT_EQ(3, events) << "an edge is told once";
  loop->unwatch(pair.near.get(), *key);
  loop->unwatch(pair.near.get(), *key);
}

TEST(UvLoop, RefusesWhatCannotBeWatched) {
  assume_on_loop();
  auto loop = make_loop();
  OnReady watcher([](Ready) {});
  EXPECT_FALSE(loop->watch(-1, watcher));
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  auto key = loop->watch(file.get(), watcher);
  ASSERT_FALSE(key);
  EXPECT_EQ(FaultKind::internal, key.fault().kind);
}

// Both are ready in one batch; the first callback unregisters the other and registers a third in its slot.
TEST(UvLoop, DropsAnEventWhoseRegistrationEndedInTheSameBatch) {
  assume_on_loop();
  auto loop = make_loop();
  Pair pairs[3];
  WatchKey keys[2];
  int told = 0, third_told = 0;
  OnReady third([&](Ready ready) { third_told += ready.readable ? 1 : 0; });
  std::unique_ptr<OnReady> watchers[2];
  for (int i = 0; i < 2; ++i) {
    watchers[i] = std::make_unique<OnReady>([&, i](Ready ready) {
      assume_on_loop();
      if (!ready.readable) return;
      ++told;
      loop->unwatch(pairs[1 - i].near.get(), keys[1 - i]);
      watchers[1 - i].reset();
      ASSERT_TRUE(loop->watch(pairs[2].near.get(), third));
    });
    keys[i] = *loop->watch(pairs[i].near.get(), *watchers[i]);
  }
  pairs[0].say("x");
  pairs[1].say("x");
  loop->turn(true);
  EXPECT_EQ(1, told);
  loop->turn(false);
  loop->turn(false);
  EXPECT_EQ(0, third_told);
  EXPECT_EQ(1, told);
}

TEST(UvLoop, LetsAWatcherDestroyItselfWhileItIsTold) {
  assume_on_loop();
  auto loop = make_loop();
  auto pair = std::make_unique<Pair>();
  std::unique_ptr<OnReady> watcher;
  WatchKey key;
  watcher = std::make_unique<OnReady>([&](Ready) {
    assume_on_loop();
    auto last = std::move(watcher);
    loop->unwatch(pair->near.get(), key);
    pair.reset();
  });
  key = *loop->watch(pair->near.get(), *watcher);
  loop->turn(true);
  EXPECT_EQ(nullptr, watcher);
}

TEST(UvLoop, AcceptsFromAListenerUntilNobodyIsThere) {
  assume_on_loop();
  auto loop = make_loop();
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(0, ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length));
  ASSERT_EQ(0, ::listen(listener.get(), 16));
  ASSERT_EQ(0, ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length));
  std::vector<Fd> accepted, clients;
  OnReady acceptor([&](Ready) {
    for (;;) {
      Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) break;
      accepted.push_back(std::move(fd));
    }
  });
  auto key = loop->watch(listener.get(), acceptor);
  ASSERT_TRUE(key);
  for (std::size_t wave = 1; wave <= 3; ++wave) {
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(0, ::connect(clients.back().get(), reinterpret_cast<sockaddr*>(&address), length));
    }
    turn_until(*loop, [&] { return accepted.size() == 3 * wave; });
  }
  loop->unwatch(listener.get(), *key);
}

struct SharedSeen final : SharedWatcher {
  void on_shared_ready(std::uint32_t index, std::uint32_t generation, Ready ready) override {
    if (ready.readable) seen.emplace_back(index, generation);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;
};

TEST(UvLoop, NamesASharedThingByIndexAndGeneration) {
  assume_on_loop();
  auto loop = make_loop();
  SharedSeen seen;
  loop->set_shared_watcher(&seen);
  Pair pair;
  ASSERT_TRUE(loop->watch_shared(pair.near.get(), 0xFFFF'FFFE, 0xF'FFFF));
  pair.say("x");
  loop->turn(true);
  ASSERT_EQ(1U, seen.seen.size());
  EXPECT_EQ(std::pair(0xFFFF'FFFEU, 0xF'FFFFU), seen.seen[0]);
  EXPECT_FALSE(loop->watch_shared(pair.near.get(), 1, 1)) << "watched once";
  loop->unwatch_shared(pair.near.get());
  loop->unwatch_shared(pair.near.get());
  // Data that another loop left unread is reported again on the new loop.
  auto other = make_loop(1);
  SharedSeen there;
  other->set_shared_watcher(&there);
  ASSERT_TRUE(other->watch_shared(pair.near.get(), 7, 8));
  other->turn(true);
  ASSERT_EQ(1U, there.seen.size());
  EXPECT_EQ(std::pair(7U, 8U), there.seen[0]);
  pair.say("y");
  loop->turn(false);
  EXPECT_EQ(1U, seen.seen.size());
}

TEST(UvLoop, RunsDeferredWorkInTheSameTurnAfterTheEvents) {
  assume_on_loop();
  auto loop = make_loop();
  Pair pair;
  std::vector<int> order;
  OnRun second([&] { order.push_back(3); });
  OnRun first([&] {
    assume_on_loop();
    order.push_back(2);
    loop->defer(second);
  });
  OnReady watcher([&](Ready) {
    assume_on_loop();
    loop->defer(first);
    loop->defer(first);
    order.push_back(1);
  });
  auto key = loop->watch(pair.near.get(), watcher);
  loop->turn(true);
  EXPECT_EQ((std::vector{1, 2, 3}), order) << "once each, and what deferred work defers still in this turn";
  loop->unwatch(pair.near.get(), *key);
}

TEST(UvLoop, LetsOthersHaveTheirTurnBetweenTheRunsOfOneWhoAsksAgain) {
  assume_on_loop();
  auto loop = make_loop();
  Pair pair;
  int runs = 0, told = 0;
  OnRun* self = nullptr;
  OnRun busy([&] {
    assume_on_loop();
    ++runs;
    loop->defer(*self);
  });
  self = &busy;
  loop->defer(busy);
  loop->turn(true);
  EXPECT_EQ(1, runs);
  OnReady watcher([&](Ready) { ++told; });
  auto key = loop->watch(pair.near.get(), watcher);
  loop->turn(true);
  EXPECT_EQ(2, runs);
  EXPECT_EQ(1, told);
  loop->unwatch(pair.near.get(), *key);
}

TEST(UvLoop, LosesNothingOfATurnInWhichACallbackThrows) {
  assume_on_loop();
  auto loop = make_loop();
  const auto fail = [] { throw std::runtime_error("of its own"); };
  Pair pairs[2];
  int told = 0, ran = 0, arrived = 0, fired = 0;
  OnReady watchers[] = {OnReady([&](Ready ready) {
                          if (ready.readable) fail();
                        }),
                        OnReady([&](Ready ready) { told += ready.readable ? 1 : 0; })};
  WatchKey keys[2];
  for (int i = 0; i < 2; ++i) keys[i] = *loop->watch(pairs[i].near.get(), watchers[i]);
  loop->turn(true);
  for (const Pair& pair : pairs) pair.say("x");  // in one batch, and each edge is reported once
  OnRun throws_deferred(fail), deferred([&] { ++ran; });
  loop->defer(throws_deferred);
  loop->defer(deferred);
  OnArrive throws_mail(fail), mail([&] { ++arrived; });
  loop->post(throws_mail);
  loop->post(mail);
  OnTime throws_time(*loop, fail), timer(*loop, [&] { ++fired; });
  throws_time.timer.arm(loop->now());
  timer.timer.arm(loop->now());
  EXPECT_THROW(loop->turn(true), std::runtime_error);
  EXPECT_EQ((std::vector{1, 1, 1, 1}), (std::vector{told, ran, arrived, fired})) << "all in that turn";
  loop->turn(false);
  for (int i = 0; i < 2; ++i) loop->unwatch(pairs[i].near.get(), keys[i]);
}

TEST(UvLoop, KeepsDeferredWorkThatAsksForItselfBesideOneThatThrows) {
  assume_on_loop();
  auto loop = make_loop();
  int runs = 0;
  OnRun* self = nullptr;
  OnRun throws([] { throw std::runtime_error("of its own"); });
  OnRun again([&] {
    assume_on_loop();
    ++runs;
    loop->defer(*self);
    loop->defer(throws);  // runs when `again` already waits for the next iteration
  });
  self = &again;
  loop->defer(again);
  for (int turn = 1; turn <= 4; ++turn) {
    EXPECT_THROW(loop->turn(false), std::runtime_error);
    EXPECT_EQ(turn, runs);
    EXPECT_TRUE(again.linked());
  }
}

TEST(UvLoop, FiresTimersWhileItIsBusy) {
  assume_on_loop();
  auto loop = make_loop();
  OnRun* self = nullptr;
  OnRun busy([&] {
    assume_on_loop();
    loop->defer(*self);
  });
  self = &busy;
  loop->defer(busy);
  bool fired = false, fired_in_libuv = false;
  const Instant start = Clock::now();
  OnTime timer(*loop, [&] { fired = true; });
  timer.timer.arm(start + 5ms);
  uv_timer_t in_libuv;
  uv_timer_init(&libuv_of(*loop), &in_libuv);
  in_libuv.data = &fired_in_libuv;
  uv_update_time(&libuv_of(*loop));
  uv_timer_start(
      &in_libuv, [](uv_timer_t* t) { *static_cast<bool*>(t->data) = true; }, 5, 0);
  turn_until(*loop, [&] { return fired && fired_in_libuv; });
  EXPECT_GE(Clock::now() - start, 5ms);
  busy.unlink();
  uv_close(reinterpret_cast<uv_handle_t*>(&in_libuv), nullptr);
  loop->turn(false);
}

TEST(UvLoop, IsIdleWhileItWaits) {
  auto loop = make_loop();
  OnTime end(*loop, [&] { loop->stop(); });
  const Instant start = Clock::now();
  timespec cpu_before{}, cpu_after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_before);
  end.timer.arm(start + 200ms);
  loop->run();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_after);
  EXPECT_GE(Clock::now() - start, 200ms);
  EXPECT_LE(loop->turns(), 3U);
  const auto cpu_ns = (cpu_after.tv_sec - cpu_before.tv_sec) * 1'000'000'000 + cpu_after.tv_nsec - cpu_before.tv_nsec;
  EXPECT_LT(cpu_ns, 20'000'000);
}

TEST(UvLoop, TakesMailFromItselfWithoutAWakeUp) {
  auto loop = make_loop();
  int arrivals = 0;
  OnArrive* self = nullptr;
  OnArrive mail([&] {
    if (++arrivals == 5) return loop->stop();
    loop->post(*self);
  });
  self = &mail;
  loop->post(mail);
  loop->run();
  EXPECT_EQ(5, arrivals);
}

TEST(UvLoop, ObeysAStopThatCameBeforeItRan) {
  auto loop = make_loop();
  loop->stop();
  loop->run();
  EXPECT_EQ(0U, loop->turns());
  OnArrive mail([&] { loop->stop(); });
  loop->post(mail);
  loop->run();
  EXPECT_GE(loop->turns(), 1U) << "and runs again afterwards";
}

TEST(UvLoop, DrainsWhatIsLeftInTheMailAndWhatThatDefers) {
  auto loop = make_loop();
  bool deferred = false;
  OnRun work([&] { deferred = true; });
  OnArrive mail([&] {
    assume_on_loop();
    loop->defer(work);
  });
  loop->post(mail);
  loop->drain();
  EXPECT_TRUE(deferred);
}

TEST(UvLoop, RunsLibuvsOwnHandles) {
  auto loop = make_loop();
  uv_loop_t& uv = libuv_of(*loop);
  Pair pair;
  bool polled = false, woken = false;
  uv_poll_t poll;
  uv_poll_init(&uv, &poll, pair.near.get());
  poll.data = &polled;
  uv_async_t async;
  uv_async_init(&uv, &async, [](uv_async_t* a) { *static_cast<bool*>(a->data) = true; });
  async.data = &woken;
  uv_poll_start(&poll, UV_READABLE, [](uv_poll_t* p, int, int) {
    *static_cast<bool*>(p->data) = true;
    uv_poll_stop(p);
  });
  std::thread other([&] {
    pair.say("x");
    uv_async_send(&async);
  });
  turn_until(*loop, [&] { return polled && woken; });
  other.join();
  uv_close(reinterpret_cast<uv_handle_t*>(&poll), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&async), nullptr);
  loop->turn(false);
}

TEST(UvLoop, HasMoreEventsThanOneTurnTakes) {
  assume_on_loop();
  auto loop = make_loop();
  std::vector<Pair> pairs(400);
  std::vector<WatchKey> keys;
  int told = 0;
  OnReady watcher([&](Ready) { ++told; });
  for (const Pair& pair : pairs) keys.push_back(*loop->watch(pair.near.get(), watcher));
  loop->turn(false);
  EXPECT_EQ(256, told);
  loop->turn(false);
  EXPECT_EQ(400, told);
  for (std::size_t i = 0; i < pairs.size(); ++i) loop->unwatch(pairs[i].near.get(), keys[i]);
}

TEST(UvLoop, HasMoreTimersThanOneTurnRuns) {
  auto loop = make_loop();
  const Instant due = Clock::now();
  int fired = 0;
  std::deque<OnTime> timers;
  for (int i = 0; i < 800; ++i) {
    timers.emplace_back(*loop, [&] { ++fired; }).timer.arm(due);
  }
  loop->turn(true);
  EXPECT_EQ(512, fired);
  loop->turn(true);  // does not wait: deferred work is due
  EXPECT_EQ(800, fired);
}

TEST(UvLoop, LendsOneReadBufferToOneReadAfterTheOther) {
  assume_on_loop();
  auto loop = make_loop();
  const char* first = nullptr;
  {
    const ReadBuffer buffer(*loop);
    EXPECT_EQ(64U * 1024, buffer.size());
    first = buffer.span().data();
  }
  const ReadBuffer buffer(*loop);
  EXPECT_EQ(first, buffer.span().data());
}

TEST(UvLoop, LendsAReadInsideAnotherOneMemoryOfItsOwn) {
  assume_on_loop();
  auto loop = make_loop();
  const ReadBuffer outer(*loop);
  outer.span()[0] = 'o';
  {
    const ReadBuffer inner(*loop);
    EXPECT_EQ(outer.size(), inner.size());
    inner.span()[0] = 'i';
  }
  const ReadBuffer again(*loop);
  again.span()[0] = 'a';
  EXPECT_EQ("o", outer.view(1));
}

TEST(UvLoopDeathTest, RefusesALeaseThatOutlivesTheReadWhoseBytesItMayShow) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        assume_on_loop();
        auto loop = make_loop();
        const ReadBuffer buffer(*loop);
        loop->leases().lend();
      },
      "impossible state");
}

TEST(UvLoopDeathTest, RefusesALeaseThatOutlivesItsEvent) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        assume_on_loop();
        auto loop = make_loop();
        Pair pair;
        OnReady keeper([&](Ready) { loop->leases().lend(); });
        static_cast<void>(*loop->watch(pair.near.get(), keeper));
        loop->turn(false);
      },
      "impossible state");
}

TEST(UvLoopDeathTest, KnowsItsThread) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        auto loop = make_loop();
        OnArrive mail([&] { std::thread([&] { loop->enter(); }).join(); });
        loop->post(mail);
        loop->turn(true);
      },
      "impossible state");
}

}  // namespace
}  // namespace carpool::exec
