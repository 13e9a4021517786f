// HeapTrim: looks once a second, on the admin thread, whether malloc keeps memory that nobody uses, and gives it back
// in the background. Without it what a burst took stays resident, the pod pays for it, and the marks of overload, which
// go by resident memory, are never left again. A look may take a thousandth of the time: after a long one the next is
// put off.
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
  // Before the loop turns.
  HeapTrim(exec::Loop& loop, Executors& executors, const OverloadState& overload);

  // Any thread. What the last look saw, in bytes, and what went back so far.
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
  HeapUse after_;                                                 // what run() saw; its post() hands it to the loop
  std::atomic<std::uint64_t> used_{0}, unused_{0}, returned_{0};  // each stands alone: relaxed
  exec::Timer timer_;
};

}  // namespace carpool::proxy
