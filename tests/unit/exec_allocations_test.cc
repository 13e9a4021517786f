// Unit tests of allocations: in steady state a loop allocates nothing for an event, a mail, a timer or deferred work.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/unit/exec_support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CARPOOL_COUNT_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CARPOOL_COUNT_ALLOCATIONS 0
#endif
#endif
#ifndef CARPOOL_COUNT_ALLOCATIONS
#define CARPOOL_COUNT_ALLOCATIONS 1
#endif

namespace {
std::atomic<std::uint64_t> allocations{0};
}

#if CARPOOL_COUNT_ALLOCATIONS
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
#endif

namespace carpool::exec {
namespace {

using namespace testing;

TEST(UvLoop, AllocatesNothingInSteadyState) {
  if (!CARPOOL_COUNT_ALLOCATIONS) GTEST_SKIP() << "the sanitizer owns operator new";
  assume_on_loop();
  auto loop = make_loop();
  Pair pair;
  OnTime timer(*loop, [] {});
  OnRun work([] {});
  OnArrive mail([] {});
  int turns = 0;
  OnReady watcher([&](Ready) {
    assume_on_loop();
    char byte[8];
    ++turns;
    EXPECT_GT(::recv(pair.near.get(), byte, sizeof byte, 0), 0);
    loop->defer(work);
    loop->post(mail);
    timer.timer.arm(loop->now() + (turns % 2 == 0 ? 1h : 1ns));
  });
  pair.say("x");
  auto key = loop->watch(pair.near.get(), watcher);
  ASSERT_TRUE(key);
  const auto round = [&] {
    loop->turn(true);
    pair.say("x");
  };
  for (int i = 0; i < 10; ++i) round();
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 10'000; ++i) round();
  const std::uint64_t after = allocations.load();
  EXPECT_EQ(0U, after - before);
  EXPECT_GE(turns, 10'000);
  // Registering and unregistering allocate nothing either.
  for (int i = 0; i < 1000; ++i) {
    loop->unwatch(pair.near.get(), *key);
    key = loop->watch(pair.near.get(), watcher);
  }
  EXPECT_EQ(after, allocations.load());
  loop->unwatch(pair.near.get(), *key);
}

}  // namespace
}  // namespace carpool::exec
