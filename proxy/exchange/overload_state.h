// OverloadState: the shed level in force, and the figures from which it follows. The overload monitor's thread writes
// them and every loop reads them. Each value is independent, so all orders are relaxed and have no partner. A loop that
// counts descriptors before it accepts also sets the level, because a burst of clients is faster than the monitor's
// interval.
#pragma once

#include <atomic>
#include <cstdint>

#include "proxy/exchange/accept_budget.h"
#include "proxy/exchange/load_shedding.h"
#include "proxy/telemetry/resource_usage.h"

namespace carpool::proxy {

class OverloadState {
 public:
  ShedLevel level() const { return level_.load(std::memory_order_relaxed); }
  bool is_shedding(ShedLevel from) const { return level() >= from; }
  Use memory() const { return memory_.read(); }
  Use descriptors() const { return descriptors_.read(); }

  // `memory_percent`: 100 while allocations fail, regardless of `memory`.
  void set(ShedLevel level, const Use& memory, double memory_percent, const Use& descriptors, const Watermarks& marks) {
    memory_.write(memory);
    memory_percent_.store(static_cast<float>(memory_percent), std::memory_order_relaxed);
    descriptors_.write(descriptors);
    level_.store(level, std::memory_order_relaxed);
    marks_.write(marks);
    budget_.set(AcceptBudget::grant(descriptors, marks));
  }

  // Must be called before each accept, on any loop. Returns false if too few descriptors are left.
  bool may_accept() { return budget_.withdraw() || count_descriptors(); }

 private:
  struct AtomicUse {
    std::atomic<std::uint64_t> used{0}, limit{0};
    Use read() const { return {used.load(std::memory_order_relaxed), limit.load(std::memory_order_relaxed)}; }
    void write(const Use& use) {
      used.store(use.used, std::memory_order_relaxed);
      limit.store(use.limit, std::memory_order_relaxed);
    }
  };
  struct AtomicWatermarks {
    std::atomic<std::uint32_t> keep_alive{Watermarks{}.keep_alive}, new_clients{Watermarks{}.new_clients},
        idle{Watermarks{}.idle};
    Watermarks read() const {
      return {keep_alive.load(std::memory_order_relaxed), new_clients.load(std::memory_order_relaxed),
              idle.load(std::memory_order_relaxed)};
    }
    void write(const Watermarks& marks) {
      keep_alive.store(marks.keep_alive, std::memory_order_relaxed);
      new_clients.store(marks.new_clients, std::memory_order_relaxed);
      idle.store(marks.idle, std::memory_order_relaxed);
    }
  };
  bool count_descriptors();

  AcceptBudget budget_;
  AtomicWatermarks marks_;
  std::atomic<ShedLevel> level_{ShedLevel::nothing};
  AtomicUse memory_, descriptors_;
  std::atomic<float> memory_percent_{0};
};

}  // namespace carpool::proxy
