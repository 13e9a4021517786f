// exec_bench: the cost of consuming a task, by mode, by the task's invocation type, and by its work. As in Jetty's
// ExecBench: batches of 200 tasks, one producer, threads 8..64, 8 in reserve; time and process CPU are per task.
//
//   exec_bench --benchmark_min_time=0.3 --benchmark_filter='Batch/.*'
//
// cpu_ns: user and system time of the whole process per task. handover: hand-overs per task. unfinished: the maximum of
// tasks produced and not finished.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <vector>

#include "exec/reserved_threads.h"
#include "exec/strategy.h"
#include "exec/thread_pool.h"

namespace carpool::exec {
namespace {

double cpu_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return 1e9 * static_cast<double>(t.tv_sec) + 1e3 * static_cast<double>(t.tv_usec);
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// As JMH's Blackhole.consumeCPU(): about 2 ns a token.
std::uint64_t consume(std::uint64_t tokens, std::uint64_t seed) {
  std::uint64_t t = seed;
  for (std::uint64_t i = tokens; i > 0; --i) t += t * 0x5DEECE66DULL + 0xBULL + i;
  benchmark::DoNotOptimize(t);
  return t;
}

struct Shape {
  StrategyMode mode = StrategyMode::produce_consume;
  Invocation kind = Invocation::blocking;
  std::int64_t work = 20;  // tokens; < 0: sleeps this many microseconds
  std::size_t bytes = 0;   // written by the producer and read by the task
  std::size_t batch = 200;
};

class Batch;

// Embedded and reused, so that the benchmark measures the strategy and not an allocator.
class Job final : public Task {
 public:
  Invocation invocation() const override { return kind; }
  const char* name() const override { return "job"; }
  Batch* batch = nullptr;
  Invocation kind = Invocation::blocking;
  std::vector<unsigned char> data;

 private:
  void run() override;
};

class Batch final : public Producer {
 public:
  explicit Batch(const Shape& shape) : shape_(shape), jobs_(shape.batch) {
    for (Job& job : jobs_) {
      job.batch = this;
      job.kind = shape.kind;
      job.data.resize(shape.bytes);
    }
  }
  void fill() {
    next_ = 0;
    left_.store(shape_.batch, std::memory_order_release);
  }
  TaskPtr produce() override {
    if (next_ == jobs_.size()) return nullptr;
    Job& job = jobs_[next_++];
    for (unsigned char& byte : job.data) byte = static_cast<unsigned char>(byte + next_);
    most_ = std::max(most_, next_ - (jobs_.size() - left_.load(std::memory_order_relaxed)));
    return lend(job);
  }
  void run(const Job& job) {
    if (shape_.work >= 0) {
      consume(static_cast<std::uint64_t>(shape_.work), 42);
    } else {
      const timespec nap{0, -shape_.work * 1000};
      ::ppoll(nullptr, 0, &nap, nullptr);  // waiting is this task's work
    }
    std::uint64_t sum = 0;
    for (const unsigned char byte : job.data) sum += byte;
    benchmark::DoNotOptimize(sum);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }
  void wait() const {
    for (std::size_t left; (left = left_.load(std::memory_order_acquire)) != 0;) left_.wait(left);
  }
  std::size_t most() const { return most_; }

 private:
  Shape shape_;
  std::vector<Job> jobs_;
  std::size_t next_ = 0, most_ = 0;
  std::atomic<std::size_t> left_{0};
};

void Job::run() {
  batch->run(*this);
}

struct BenchFixture {
  explicit BenchFixture(unsigned spins = 0) : pool(options()), source(pool, "bench", 1'000'000) {
    if (!pool.start()) std::abort();
    ReserveOptions kept;
    kept.capacity = 8;
    kept.min = 8;
    kept.spins = spins;
    reserve = std::make_unique<ReservedThreads>(pool, kept);
  }
  ~BenchFixture() {
    reserve->stop();
    pool.stop(std::chrono::seconds(5));
  }
  static ThreadPoolOptions options() {
    ThreadPoolOptions options;
    options.min = 8;
    options.max = 64;
    return options;
  }
  ThreadPool pool;
  TaskSource source;
  std::unique_ptr<ReservedThreads> reserve;
};

void report(benchmark::State& state, const StrategyCounts& counts, double cpu, std::size_t most) {
  const double tasks = static_cast<double>(std::max<std::uint64_t>(1, counts.tasks()));
  state.SetItemsProcessed(static_cast<std::int64_t>(counts.tasks()));
  state.counters["cpu_ns"] = cpu / tasks;
  state.counters["handover"] = static_cast<double>(counts.took_over + counts.noop) / tasks;
  state.counters["epc"] = static_cast<double>(counts.epc) / tasks;
  state.counters["pec"] = static_cast<double>(counts.pec) / tasks;
  state.counters["unfinished"] = static_cast<double>(most);
}

// One producer: fills the queue, produces, waits for the batch.
void batch(benchmark::State& state, Shape shape) {
  Batch producer(shape);
  BenchFixture fixture;
  {
    Strategy strategy(shape.mode, producer, fixture.source, fixture.reserve.get(), nullptr);
    const double before = cpu_ns();
    for (auto _ : state) {
      producer.fill();
      strategy.produce();
      producer.wait();
    }
    const double after = cpu_ns();
    report(state, strategy.counts(), after - before, producer.most());
    fixture.reserve->stop();
    fixture.pool.stop(std::chrono::seconds(5));
  }
}

// Eight producers on two threads, four tasks at a time each, like a connection with four streams that share its data.
void producers(benchmark::State& state, Shape shape) {
  shape.batch = 4;
  constexpr std::size_t kProducers = 8;
  std::vector<std::unique_ptr<Batch>> all;
  for (std::size_t i = 0; i < kProducers; ++i) all.push_back(std::make_unique<Batch>(shape));
  BenchFixture fixture;
  {
    std::vector<std::unique_ptr<Strategy>> strategies;
    for (auto& one : all) {
      strategies.push_back(
          std::make_unique<Strategy>(shape.mode, *one, fixture.source, fixture.reserve.get(), nullptr));
    }
    const double before = cpu_ns();
    for (auto _ : state) {
      for (std::size_t i = 0; i < kProducers; ++i) {
        all[i]->fill();
        // Half of the tasks are dispatched, as a selector does; the other half run on the thread that produced them.
        i % 2 == 0 ? static_cast<void>(strategies[i]->dispatch()) : strategies[i]->produce();
      }
      for (auto& one : all) one->wait();
    }
    const double after = cpu_ns();
    StrategyCounts counts;
    std::size_t most = 0;
    for (auto& strategy : strategies) counts += strategy->counts();
    for (auto& one : all) most = std::max(most, one->most());
    report(state, counts, after - before, most);
    fixture.reserve->stop();
    fixture.pool.stop(std::chrono::seconds(5));
  }
}

const char* name_of(StrategyMode mode) {
  constexpr const char* names[] = {"PC", "PEC", "EPC", "ADAPTIVE"};
  return names[static_cast<std::size_t>(mode)];
}

void add_all() {
  constexpr StrategyMode modes[] = {StrategyMode::produce_consume, StrategyMode::produce_execute_consume,
                                    StrategyMode::execute_produce_consume, StrategyMode::adaptive};
  const auto add = [](const std::string& name, auto function, const Shape& shape) {
    benchmark::RegisterBenchmark((name + name_of(shape.mode)).c_str(),
                                 [=](benchmark::State& state) { function(state, shape); })
        ->UseRealTime()
        ->MeasureProcessCPUTime();
  };
  for (const StrategyMode mode : modes) {
    for (const std::int64_t work : {20, 1000, -50}) {
      const std::string does = work < 0 ? "sleep_50us/" : std::to_string(work) + "_tokens/";
      add("Batch/" + does + "blocking/", batch, {.mode = mode, .work = work});
      if (mode != StrategyMode::adaptive) continue;
      add("Batch/" + does + "either/", batch, {.mode = mode, .kind = Invocation::either, .work = work});
      add("Batch/" + does + "non_blocking/", batch, {.mode = mode, .kind = Invocation::non_blocking, .work = work});
    }
    for (const std::size_t bytes : {1024, 4096, 16384}) {
      add("Data/" + std::to_string(bytes) + "/", batch, {.mode = mode, .work = 0, .bytes = bytes});
    }
    for (const std::int64_t work : {250, 1250, 2500, 12'500, 25'000}) {
      add("Sweep/" + std::to_string(work) + "_tokens/", batch, {.mode = mode, .work = work});
    }
    add("Producers/8x4/", producers, {.mode = mode, .work = 100, .bytes = 1024});
  }
}

}  // namespace
}  // namespace carpool::exec

int main(int argc, char** argv) {
  carpool::exec::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
