#include "proxy/server/overload/heap_trim.h"

#include "base/thread_cpu.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/resource_usage.h"

namespace carpool::proxy {

namespace {
constexpr Duration kTrimInterval = TrimPolicy::pause_after(Duration::zero());
}  // namespace

HeapTrim::HeapTrim(exec::Loop& loop, exec::Executor& background, const OverloadState& overload)
    : overload_(overload), cycle_(loop, background, *this, kTrimInterval) {}

void HeapTrim::show(const HeapUse& use) {
  used_.store(use.used, std::memory_order_relaxed);
  unused_.store(use.unused(), std::memory_order_relaxed);
}

Duration HeapTrim::postpone() {
  const Duration before = thread_cpu();
  const HeapUse use = heap_use();
  const Duration took = thread_cpu() - before;
  show(use);
  const bool trims = policy_.sample(use.unused(), overload_.is_shedding(ShedLevel::keep_alive), Clock::now());
  return trims ? Duration::zero() : TrimPolicy::pause_after(took);
}

void HeapTrim::work() {
  const std::uint64_t before = resident().own();
  give_back_free_pages();
  after_ = heap_use();
  const std::uint64_t bytes = before - std::min(before, after_.resident);
  returned_.fetch_add(bytes, std::memory_order_relaxed);
  log::debug("memory", "unused memory returned to the kernel", {{"bytes", bytes}, {"resident", after_.resident}});
}

// A trim that did not happen leaves the policy unchanged.
void HeapTrim::ended(bool done) {
  if (!done) return;
  policy_.done(after_.unused());
  show(after_);
}

}  // namespace carpool::proxy
