// Counter: a monotonic number written by many loops without a shared cache line and summed when read.
//
// Each loop owns one Cell and is its only writer, so an increment is a plain load and store (about 1 ns), not a locked
// instruction. The cells are not read at one instant; none ever decreases, so neither does the sum.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.h"
#include "base/loop_id.h"

namespace carpool::metrics {

// One writer, any number of readers. relaxed: a count publishes nothing.
class Cell {
 public:
  void add(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Counter {
 public:
  explicit Counter(unsigned loops) : loops_(loops), shards_(std::make_unique<Shard[]>(loops)) {}

  void add(LoopId loop, std::uint64_t n = 1) {
    CARPOOL_ASSERT(loop < loops_);
    shards_[loop].cell.add(n);
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < loops_; ++i) sum += shards_[i].cell.read();
    return sum;
  }

 private:
  struct alignas(kCacheLine) Shard {
    Cell cell;
  };
  unsigned loops_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace carpool::metrics
