// pool_core_bench: the raw pool as in the Java rows: strategies x sizes x multiplex x threads, each thread a loop; for
// comparison the simplest alternative, a mutex around a deque, and the contenders of the original experiment: twelve
// threads, twelve entries, a locked stack, a locked stack with counts, a locked queue.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pool/core/object_pool.h"
#include "pool/core/pool.h"
#include "tests/bench/pool_work.h"

namespace carpool::pool {
namespace {

// Starts a second thread: until a process has one, glibc's mutex uses no locked instruction, and the rows of one thread
// would measure that.
const bool shared = [] {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  return true;
}();

// One subject for all threads of a row, created by the first thread before the others begin.
template <class Subject>
std::unique_ptr<Subject> subject;

// kWork: run the tokens between borrow and restore. Without them the threads contend for the pool all the time.
template <class Subject, bool kWork>
void row(benchmark::State& state) {
  CARPOOL_ASSERT(shared);
  const auto me = static_cast<unsigned>(state.thread_index());
  bench::Work work(me + 1);
  std::optional<bench::CpuTime> time;
  for (auto step : state) {  // begins when all threads have arrived
    static_cast<void>(step);
    if (!time) time.emplace(state);
    Subject& pool = *subject<Subject>;
    auto* entry = pool.take(me);
    for (; entry == nullptr; entry = pool.take(me)) std::this_thread::yield();
    if (kWork) work();
    pool.give(*entry);
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
        pool_.acquire(static_cast<LoopId>(me), kHint, [](const Entry<int>&, EntryWord) { return Match::take; });
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

// One entry is idle and all others are borrowed: the idle one is the first or the last.
template <bool kHint, bool kLast>
class OneIdle : public Ours<kHint> {
 public:
  OneIdle(std::uint32_t size, std::uint32_t multiplex, unsigned threads) : Ours<kHint>(size, multiplex, threads) {
    Entry<int>* rests = nullptr;
    while (Entry<int>* one = this->take(0)) {
      if (one->place() == (kLast ? size - 1 : 0)) rests = one;
    }
    this->give(*rests);
  }
};
using Entry0 = OneIdle<true, false>;
using Entry999 = OneIdle<true, true>;
using Entry0Searched = OneIdle<false, false>;
using Entry999Searched = OneIdle<false, true>;

// Over all entries, whichever loop they belong to: includes the takeover.
template <Strategy kStrategy>
class OverAll : public Ours<false> {
 public:
  using Ours<false>::Ours;
  Entry<int>* take(unsigned me) {
    return pool()
        .acquire(SearchHint{static_cast<LoopId>(me), true, kStrategy},
                 [](const Entry<int>&, EntryWord) { return Match::take; })
        .entry;
  }
};
using Random = OverAll<Strategy::random>;
using RoundRobin = OverAll<Strategy::round_robin>;

// With handles, hooks and limits (pool/core/object_pool.h), with the defaults.
class Lent {
 public:
  using Things = ObjectPool<int>;
  Lent(std::uint32_t size, std::uint32_t multiplex, unsigned threads)
      : things_({.cap = size, .loops = threads, .multiplex = multiplex}), loans_(threads) {
    for (std::uint32_t n = 0; n < size; ++n) {
      int thing = 0;
      things_.insert(thing, static_cast<LoopId>(n % threads));
    }
  }
  Things::Handle* take(unsigned me) {
    loans_[me].loan = things_.acquire({.loop = static_cast<LoopId>(me)});
    return loans_[me].loan ? &loans_[me].loan : nullptr;
  }
  static void give(Things::Handle& loan) { loan.give_back(); }

 private:
  struct alignas(kCacheLine) Own {
    Things::Handle loan;
  };
  Things things_;
  std::vector<Own> loans_;
};

// std::mutex + deque, LIFO or FIFO.
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

// A stack whose top is borrowed until it is full: the classic multiplexed pool.
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
// As many entries as threads of the experiment. The contended rows, with nothing between borrow and restore, use only
// these.
void twelve(benchmark::internal::Benchmark* row) {
  row->Args({12, 1})->Args({12, 8})->Threads(1)->Threads(2)->Threads(4)->Threads(12)->UseRealTime();
}
void thousand(benchmark::internal::Benchmark* row) {
  row->Args({1000, 1})->Threads(1)->UseRealTime();
}

#define CARPOOL_ROWS(subject, name, sizes, sizes_tight)                                                              \
  BENCHMARK_TEMPLATE(row, subject, true)->Setup(make<subject>)->Teardown(unmake<subject>)->Apply(sizes)->Name(name); \
  BENCHMARK_TEMPLATE(row, subject, false)                                                                            \
      ->Setup(make<subject>)                                                                                         \
      ->Teardown(unmake<subject>)                                                                                    \
      ->Apply(sizes_tight)                                                                                           \
      ->Name(name "_TIGHT")

CARPOOL_ROWS(First, "FIRST", grid, twelve);
CARPOOL_ROWS(ThreadId, "THREAD_ID", grid, twelve);
CARPOOL_ROWS(Random, "RANDOM", grid, twelve);
CARPOOL_ROWS(RoundRobin, "ROUND_ROBIN", grid, twelve);
CARPOOL_ROWS(Lent, "LENDER", twelve, twelve);
CARPOOL_ROWS(Deque, "DEQUE", grid, twelve);
CARPOOL_ROWS(Queue, "QUEUE", twelve, twelve);
CARPOOL_ROWS(CountedStack, "COUNTED_STACK", twelve, twelve);
CARPOOL_ROWS(Entry0, "ENTRY_0", thousand, thousand);
CARPOOL_ROWS(Entry999, "ENTRY_999", thousand, thousand);
CARPOOL_ROWS(Entry0Searched, "ENTRY_0_SEARCHED", thousand, thousand);
CARPOOL_ROWS(Entry999Searched, "ENTRY_999_SEARCHED", thousand, thousand);

}  // namespace
}  // namespace carpool::pool
