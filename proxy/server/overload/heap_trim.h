// HeapTrim: samples once a second, on the admin thread, how much free memory malloc holds, and returns it to the kernel
// in the background. After a burst malloc keeps freed memory resident; because the overload thresholds look at resident
// memory, carpool would otherwise stay in overload. Sampling may take at most a thousandth of a
// processor: the next sample after a costly one is delayed.
#pragma once

#include <atomic>
#include <cstdint>

#include "exec/periodic_task.h"
#include "proxy/server/overload/heap.h"
#include "proxy/server/overload/trim_policy.h"

namespace carpool::proxy {

class OverloadState;

class HeapTrim final : private exec::PeriodicTask::Work {
 public:
  // Must be constructed before the loop runs.
  HeapTrim(exec::Loop& loop, exec::Executor& background, const OverloadState& overload);
  void stop() LOOP_ONLY { cycle_.stop(); }

  // Usage: the last sample in bytes, and the total returned so far. Any thread.
  struct Usage {
    std::uint64_t used = 0, unused = 0, returned = 0;
  };
  Usage usage() const {
    return {used_.load(std::memory_order_relaxed), unused_.load(std::memory_order_relaxed),
            returned_.load(std::memory_order_relaxed)};
  }

 private:
  const char* name() const override { return "heap trim"; }
  Duration postpone() override LOOP_ONLY;  // takes the sample
  void work() override;
  void ended(bool done) override LOOP_ONLY;
  void show(const HeapUse& use);

  const OverloadState& overload_;
  TrimPolicy policy_;
  HeapUse after_;                                                 // result of work()
  std::atomic<std::uint64_t> used_{0}, unused_{0}, returned_{0};  // independent of each other: relaxed
  exec::PeriodicTask cycle_;
};

}  // namespace carpool::proxy
