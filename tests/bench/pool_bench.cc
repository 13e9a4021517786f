// pool_bench: the cost of a borrow and a release when a connection is idle. The target is 34 CPU-ns for the pair, no
// lock and no allocation. DestinationHit is the proxy's cost, PoolHit the core alone.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "pool/core/pool.h"
#include "pool/destination/destination.h"
#include "pool/queue/delivery.h"
#include "tests/bench/pool_work.h"

namespace {
thread_local std::uint64_t allocations = 0;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace carpool::pool {
namespace {

thread_local LoopId this_loop = 0;

struct Nothing final : PooledConnection {
  bool clean_for_reuse() override { return true; }
};

class SilentEnvironment final : public Environment {
 public:
  void dial(Destination&, Reservation reservation) override { made.push_back(std::move(reservation)); }
  void deliver(LoopId, Delivery& delivery) override { delivery.arrive(Instant{}); }
  void detach(PooledConnection&, LoopId) override {}
  bool attach(PooledConnection&, std::uint32_t, std::uint32_t) override { return true; }
  void dispose(PooledConnection* pooled, CloseCause) override { const std::unique_ptr<PooledConnection> dies(pooled); }
  LoopId here() const override { return this_loop; }
  std::vector<Reservation> made;
};

class Someone final : public Borrower {
 public:
  void on_lease(Lease granted) override { lease = std::move(granted); }
  void on_refused(Fault) override {}
  Lease lease;
};

// `entries` idle connections, spread over the loops.
struct Fixture {
  Fixture(std::uint32_t entries, unsigned loops) : destination(origin(), limits(entries), environment, loops) {
    std::vector<std::unique_ptr<Someone>> all;
    for (std::uint32_t n = 0; n < entries; ++n) {
      this_loop = static_cast<LoopId>(n % loops);
      all.push_back(std::make_unique<Someone>());
      static_cast<void>(destination.borrow(*all.back(), {}, now));
      Reservation reservation = std::move(environment.made.back());
      environment.made.pop_back();
      destination.dialed(std::move(reservation), std::make_unique<Nothing>(), now);
    }
    for (auto& one : all) one->lease.release(now);
    this_loop = 0;
  }
  static Origin origin() {
    Origin origin;
    origin.host = "bench";
    origin.port = 80;
    return origin;
  }
  static Limits limits(std::uint32_t size) {
    Limits limits;
    limits.size = size;
    limits.expire_time = std::chrono::minutes(30);
    limits.idle_timeout = std::chrono::minutes(1);
    return limits;
  }
  const Instant now = Instant(std::chrono::hours(1));
  SilentEnvironment environment;
  Destination destination;
};

void DestinationHit(benchmark::State& state) {
  static std::unique_ptr<Fixture> fixture;
  if (state.thread_index() == 0) {
    fixture =
        std::make_unique<Fixture>(static_cast<std::uint32_t>(state.range(0)), static_cast<unsigned>(state.threads()));
  }
  Someone borrower;
  this_loop = static_cast<LoopId>(state.thread_index());
  Instant now{};
  std::uint64_t before = 0;
  for (auto step : state) {
    static_cast<void>(step);
    if (now == Instant{}) {
      now = fixture->now;
      before = allocations;
    }
    auto result = fixture->destination.borrow(borrower, {}, now);
    if (auto* lease = std::get_if<Lease>(&result)) {
      benchmark::DoNotOptimize(lease->get());
      lease->release(now);
    } else {
      state.SkipWithError("a miss");
    }
  }
  state.counters["allocations"] = static_cast<double>(allocations - before);
  if (state.thread_index() == 0) fixture.reset();
}
BENCHMARK(DestinationHit)->Arg(1)->Arg(12)->Arg(100);
BENCHMARK(DestinationHit)->Arg(12)->Arg(100)->Threads(2)->UseRealTime();

// The whole state machine, with the work of the Java rows between borrow and restore; one loop per thread.
void StateMachine(benchmark::State& state) {
  static std::unique_ptr<Fixture> fixture;
  if (state.thread_index() == 0) {
    fixture =
        std::make_unique<Fixture>(static_cast<std::uint32_t>(state.range(0)), static_cast<unsigned>(state.threads()));
  }
  const auto me = static_cast<LoopId>(state.thread_index());
  this_loop = me;
  Someone borrower;
  bench::Work work(me + 1U);
  std::optional<bench::CpuTime> time;
  for (auto step : state) {
    static_cast<void>(step);
    if (!time) {
      this_loop = me;  // the first thread built the fixture as every loop
      time.emplace(state);
    }
    auto result = fixture->destination.borrow(borrower, {}, fixture->now);
    auto* lease = std::get_if<Lease>(&result);
    if (lease == nullptr) {
      state.SkipWithError("a miss");
      break;
    }
    work();
    lease->release(fixture->now);
  }
  time.reset();
  if (state.thread_index() == 0) fixture.reset();
}
BENCHMARK(StateMachine)->Arg(12)->Arg(100)->Arg(1000)->Threads(1)->Threads(2)->Threads(4)->Threads(12)->UseRealTime();

void PoolHit(benchmark::State& state) {
  Pool<int> pool(static_cast<std::uint32_t>(state.range(0)), 1);
  for (std::int64_t n = 0; n < state.range(0); ++n) pool.enable(*pool.reserve(), 0, false);
  for (auto step : state) {
    static_cast<void>(step);
    auto found = pool.acquire(0, true, [](const Entry<int>&, EntryWord) { return Match::take; });
    benchmark::DoNotOptimize(found.entry);
    pool.release(*found.entry);
  }
}
BENCHMARK(PoolHit)->Arg(1)->Arg(12)->Arg(100);

}  // namespace
}  // namespace carpool::pool

BENCHMARK_MAIN();
