#include "proxy/server/overload/heap_trim.h"

#include <algorithm>

#include "proxy/exchange/overload_state.h"
#include "proxy/server/executors.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/resource_usage.h"

namespace carpool::proxy {

namespace {
constexpr Duration kLookEvery = std::chrono::seconds(1);
constexpr int kShare = 1000;
}  // namespace

HeapTrim::HeapTrim(exec::Loop& loop, Executors& executors, const OverloadState& overload)
    : loop_(loop),
      executors_(executors),
      overload_(overload),
      timer_(exec::Timer::bind<&HeapTrim::sample>(loop, *this)) {
  timer_.arm(loop.now() + kLookEvery);
}

void HeapTrim::show(const HeapUse& use) {
  used_.store(use.used, std::memory_order_relaxed);
  unused_.store(use.unused(), std::memory_order_relaxed);
}

void HeapTrim::sample() {
  const Instant began = Clock::now();
  const HeapUse use = heap_use();
  const Duration took = Clock::now() - began;
  show(use);
  if (rule_.sample(use.unused(), overload_.sheds(ShedLevel::keep_alive), began)) {
    after_ = {};
    executors_.in_background(exec::lend(*this));
  } else {
    timer_.arm(began + std::max(kLookEvery, kShare * took));
  }
}

void HeapTrim::run() {
  try {
    const std::uint64_t before = resident().own();
    give_back_free_pages();
    after_ = heap_use();
    const std::uint64_t bytes = before - std::min(before, after_.resident);
    returned_.fetch_add(bytes, std::memory_order_relaxed);
    log::debug("memory", "gave back what malloc kept", {{"bytes", bytes}, {"resident", after_.resident}});
  } catch (...) {
    loop_.post(*this);  // otherwise the next sample would never be scheduled
    throw;
  }
  loop_.post(*this);
}

// Also reached when the task was rejected (too many tasks): then the policy is unchanged.
void HeapTrim::arrive() {
  if (after_.resident != 0) {
    rule_.done(after_.unused());
    show(after_);
  }
  timer_.arm(loop_.now() + kLookEvery);
}

}  // namespace carpool::proxy
