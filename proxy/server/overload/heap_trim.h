// HeapTrim: samples once a second, on the admin thread, how much free memory malloc holds, and returns it to the kernel
// in the background. After a burst malloc keeps freed memory resident; because the overload thresholds look at resident
// memory, carpool would otherwise stay in overload. Sampling may take at most a thousandth of the time: after a slow
// sample the next one is delayed.
#pragma once

#include <atomic>
#include <cstdint>

#include "exec/loop.h"
#include "exec/task.h"
#include "exec/timer.h"
#include "proxy/server/overload/heap.h"
#include "proxy/server/overload/trim_policy.h"

namespace carpool::proxy {

class Executors;
class OverloadState;

class HeapTrim final : private exec::Task, private exec::Mail {
 public:
  // Must be constructed before the loop runs.
  HeapTrim(exec::Loop& loop, Executors& executors, const OverloadState& overload);

  // The last sample in bytes, and the total returned so far. Any thread.
  struct Shown {
    std::uint64_t used = 0, unused = 0, returned = 0;
  };
  Shown shown() const {
    return {used_.load(std::memory_order_relaxed), unused_.load(std::memory_order_relaxed),
            returned_.load(std::memory_order_relaxed)};
  }

 private:
  const char* name() const override { return "heap trim"; }
  void sample();
  void show(const HeapUse& use);
  void run() override;
  void close() override { loop_.post(*this); }
  void arrive() override LOOP_ONLY;

  exec::Loop& loop_;
  Executors& executors_;
  const OverloadState& overload_;
  TrimPolicy rule_;
  HeapUse after_;                                                 // result of run(), published by its post()
  std::atomic<std::uint64_t> used_{0}, unused_{0}, returned_{0};  // independent of each other: relaxed
  exec::Timer timer_;
};

}  // namespace carpool::proxy
