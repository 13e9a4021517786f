// The raw pool as the Java rows have it: strategies x sizes x multiplex x threads, each thread a loop; beside it what
// one would write without thinking, a mutex around a deque, and the contenders of the experiment that began it all:
// twelve threads, twelve entries, a locked stack, a locked stack with counts, a locked queue.
#include <benchmark/benchmark.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pool/pool.h"
#include "tests/bench/pool_work.h"

namespace carpool::pool {
namespace {

// One subject for all threads of a row, made by the first before the others begin.
template <class Subject>
std::unique_ptr<Subject> subject;

template <class Subject>
void row(benchmark::State& state) {
  const auto me = static_cast<unsigned>(state.thread_index());
  bench::Work work(me + 1);
  std::optional<bench::CpuTime> time;
  for (auto step : state) {  // begins when all threads are here
    static_cast<void>(step);
    if (!time) time.emplace(state);
    Subject& pool = *subject<Subject>;
    auto* got = pool.take(me);
    for (; got == nullptr; got = pool.take(me)) std::this_thread::yield();
    work();
    pool.give(*got);
  }
}
template <class Subject>
void make(const benchmark::State& state) {
  subject<Subject> =
      std::make_unique<Subject>(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)),
                                static_cast<unsigned>(state.threads()));
}
template <class Subject>
void unmake(const benchmark::State&) {
  subject<Subject>.reset();
}

template <bool kHint>
class Ours {
 public:
  Ours(std::uint32_t size, std::uint32_t multiplex, unsigned threads) : pool_(size, threads, multiplex) {
    for (std::uint32_t n = 0; n < size; ++n) pool_.enable(*pool_.reserve(), static_cast<LoopId>(n % threads), false);
  }
  Entry<int>* take(unsigned me) {
    const auto found =
        pool_.acquire(static_cast<LoopId>(me), kHint, [](const Entry<int>&, Word) { return Verdict::take; });
    return found.entry;
  }
  void give(Entry<int>& entry) { pool_.release(entry); }

 protected:
  Pool<int>& pool() { return pool_; }

 private:
  Pool<int> pool_;
};
using First = Ours<false>;
using ThreadId = Ours<true>;

// Over all entries, whosever they are: pays the takeover. Where a search begins is a lot, or one number for all.
template <bool kRandom>
class OverAll : public Ours<false> {
 public:
  using Ours<false>::Ours;
  Entry<int>* take(unsigned me) {
    return pool()
        .acquire_from(static_cast<LoopId>(me), kRandom ? lot() : next_.fetch_add(1, std::memory_order_relaxed), false,
                      [](const Entry<int>&, Word) { return Verdict::take; })
        .entry;
  }

 private:
  static std::uint32_t lot() {
    static thread_local std::uint32_t state =
        0x9E3779B9U ^ static_cast<std::uint32_t>(std::hash<std::thread::id>()(std::this_thread::get_id()));
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
  }
  alignas(kCacheLine) std::atomic<std::uint32_t> next_{0};
};
using Random = OverAll<true>;
using RoundRobin = OverAll<false>;

// std::mutex + deque: the last one given back is the next one lent, or the first one.
template <bool kStack>
class Locked {
 public:
  Locked(std::uint32_t size, std::uint32_t multiplex, unsigned) : things_(size) {
    for (std::uint32_t n = 0; n < size * multiplex; ++n) free_.push_back(&things_[n % size]);
  }
  int* take(unsigned) {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return nullptr;
    int* one = kStack ? free_.back() : free_.front();
    kStack ? free_.pop_back() : free_.pop_front();
    return one;
  }
  void give(int& one) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(&one);
  }

 private:
  std::mutex mutex_;
  std::vector<int> things_;
  std::deque<int*> free_;
};
using Deque = Locked<true>;
using Queue = Locked<false>;

// A stack whose top is lent again and again until it is full: the multiplexed pool of old.
class CountedStack {
 public:
  CountedStack(std::uint32_t size, std::uint32_t multiplex, unsigned) : things_(size), most_(multiplex) {
    for (Counted& one : things_) free_.push_back(&one);
  }
  struct Counted {
    std::uint32_t users = 0;
  };
  Counted* take(unsigned) {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return nullptr;
    Counted* one = free_.back();
    if (++one->users == most_) free_.pop_back();
    return one;
  }
  void give(Counted& one) {
    const std::scoped_lock lock(mutex_);
    if (one.users-- == most_) free_.push_back(&one);
  }

 private:
  std::mutex mutex_;
  std::vector<Counted> things_;
  std::deque<Counted*> free_;
  const std::uint32_t most_;
};

void grid(benchmark::internal::Benchmark* row) {
  for (const int size : {12, 100, 1000}) {
    for (const int multiplex : {1, 8}) row->Args({size, multiplex});
  }
  row->Threads(1)->Threads(2)->Threads(4)->Threads(12)->UseRealTime();
}
void twelve(benchmark::internal::Benchmark* row) {
  row->Args({12, 1})->Args({12, 8})->Threads(1)->Threads(2)->Threads(4)->Threads(12)->UseRealTime();
}

BENCHMARK_TEMPLATE(row, First)->Setup(make<First>)->Teardown(unmake<First>)->Apply(grid)->Name("FIRST");
BENCHMARK_TEMPLATE(row, ThreadId)->Setup(make<ThreadId>)->Teardown(unmake<ThreadId>)->Apply(grid)->Name("THREAD_ID");
BENCHMARK_TEMPLATE(row, Random)->Setup(make<Random>)->Teardown(unmake<Random>)->Apply(grid)->Name("RANDOM");
BENCHMARK_TEMPLATE(row, RoundRobin)
    ->Setup(make<RoundRobin>)
    ->Teardown(unmake<RoundRobin>)
    ->Apply(grid)
    ->Name("ROUND_ROBIN");
BENCHMARK_TEMPLATE(row, Deque)->Setup(make<Deque>)->Teardown(unmake<Deque>)->Apply(grid)->Name("DEQUE");
BENCHMARK_TEMPLATE(row, Queue)->Setup(make<Queue>)->Teardown(unmake<Queue>)->Apply(twelve)->Name("QUEUE");
BENCHMARK_TEMPLATE(row, CountedStack)
    ->Setup(make<CountedStack>)
    ->Teardown(unmake<CountedStack>)
    ->Apply(twelve)
    ->Name("COUNTED_STACK");

}  // namespace
}  // namespace carpool::pool
