// Overload: the stage of shedding in force, as every loop sees it, and the figures behind it. Written by one thread
// (the watch's), read by any; each value stands alone, so all orders are relaxed and have no partner.
#pragma once

#include <atomic>
#include <cstdint>

#include "proxy/overload/stage.h"
#include "proxy/overload/usage.h"

namespace carpool::proxy {

class Overload {
 public:
  Shedding stage() const { return stage_.load(std::memory_order_relaxed); }
  bool sheds(Shedding what) const { return stage() >= what; }
  Use memory() const { return memory_.read(); }
  Use descriptors() const { return descriptors_.read(); }

  void set(Shedding stage, const Use& memory, const Use& descriptors) {
    memory_.write(memory);
    descriptors_.write(descriptors);
    stage_.store(stage, std::memory_order_relaxed);
  }

 private:
  struct Shown {
    std::atomic<std::uint64_t> used{0}, limit{0};
    Use read() const { return {used.load(std::memory_order_relaxed), limit.load(std::memory_order_relaxed)}; }
    void write(const Use& use) {
      used.store(use.used, std::memory_order_relaxed);
      limit.store(use.limit, std::memory_order_relaxed);
    }
  };
  std::atomic<Shedding> stage_{Shedding::nothing};
  Shown memory_, descriptors_;
};

}  // namespace carpool::proxy
