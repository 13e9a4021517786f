// pool_work.h: the work between borrow and restore in the pool's benchmarks, 10..19 tokens of JMH's
// Blackhole.consumeCPU (about 20 ns), so that the rows compare with those of the Java originals; and the CPU time of
// all threads of a row, because elapsed time means little on a shared machine.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <ctime>

namespace carpool::bench {

class Work {
 public:
  explicit Work(std::uint32_t seed) : random_(seed * 2654435761U + 1) {}
  void operator()() {
    random_ ^= random_ << 13, random_ ^= random_ >> 17, random_ ^= random_ << 5;
    std::uint64_t t = consumed_;
    for (std::uint32_t token = 10 + random_ % 10; token != 0; --token) {
      t += (t * 0x5DEECE66DULL + 0xBULL + token) & 0xFFFFFFFFFFFFULL;
    }
    if (t == 42) consumed_ += t;
    benchmark::DoNotOptimize(t);
  }

 private:
  std::uint32_t random_;
  std::uint64_t consumed_ = 1;
};

// CPU-ns per operation over all threads of the row, and the number of busy processors.
class CpuTime {
 public:
  explicit CpuTime(benchmark::State& state)
      : state_(state), cpu_(now(CLOCK_THREAD_CPUTIME_ID)), real_(now(CLOCK_MONOTONIC)) {}
  CpuTime(const CpuTime&) = delete;
  CpuTime& operator=(const CpuTime&) = delete;
  ~CpuTime() {
    const double cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu_, real = now(CLOCK_MONOTONIC) - real_;
    state_.counters["cpu_ns"] =
        benchmark::Counter(cpu / static_cast<double>(state_.iterations()), benchmark::Counter::kAvgThreads);
    state_.counters["busy"] = benchmark::Counter(cpu / real);  // summed over the threads
    state_.SetItemsProcessed(state_.iterations());
  }

 private:
  static double now(clockid_t clock) {
    timespec at{};
    clock_gettime(clock, &at);
    return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
  }
  benchmark::State& state_;
  const double cpu_, real_;
};

}  // namespace carpool::bench
