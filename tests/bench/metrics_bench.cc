// metrics_bench: the cost of a scrape: 200 origins with every series. Time, allocations, and the greatest growth of the
// heap during a scrape, for carpool's text and for the library's.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "metrics/prometheus.h"
#include "metrics/prometheus_collectable.h"

namespace {

// Allocations of the thread that measures; those of other threads are not counted.
struct Heap {
  std::size_t count = 0, now = 0, peak = 0;
  void start() { *this = {}; }
};
thread_local Heap heap;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const made = std::malloc(size);
  if (made == nullptr) throw std::bad_alloc();
  ++heap.count;
  heap.now += malloc_usable_size(made);
  // Memory allocated before the start may be freed: the difference wraps and is not a peak.
  if (heap.now < SIZE_MAX / 2) heap.peak = std::max(heap.peak, heap.now);
  return made;
}
[[gnu::noinline]] void operator delete(void* made) noexcept {
  heap.now -= malloc_usable_size(made);
  std::free(made);
}
[[gnu::noinline]] void operator delete(void* made, std::size_t) noexcept {
  operator delete(made);
}

namespace carpool::metrics {
namespace {

OriginSample origin_of(const std::string& label) {
  OriginSample origin;
  origin.label = label;
  origin.opened = {{"first", 1}, {"all_busy", 20}, {"expired", 3}};
  origin.closed = {{"idle", 4}, {"expired", 3}, {"peer_closed", 7}};
  for (const char* reason : {"dns", "refused", "timeout", "tls", "reset", "protocol", "budget"}) {
    origin.failures.push_back({reason, 0});
  }
  for (const char* state :
       {"connecting", "idle", "borrowed", "expired_idle", "expired_borrowed", "draining", "tunnel"}) {
    origin.connections.push_back({state, 1});
  }
  origin.addresses = {{"usable", 3}, {"ejected", 0}, {"gone", 0}};
  return origin;
}

struct Scene {
  Scene() : registry(1, 200) {
    for (int i = 0; i < 200; ++i) {
      const std::string label = "http://origin-" + std::to_string(i) + ".test";
      const OriginSlot slot = registry.add_origin(label);
      registry.record_request(0, slot, {"GET", 200, std::chrono::microseconds(700), std::chrono::microseconds(1)});
      registry.record_handshake(0, slot, std::chrono::milliseconds(1));
      sample.origins.push_back(origin_of(label));
    }
  }
  Registry registry;
  Sample sample;
};

// The sample is prepared outside the measured part and consumed by it.
template <class Work>
void of_samples(benchmark::State& state, Work work) {
  const Scene scene;
  for (auto _ : state) {
    state.PauseTiming();
    Sample sample = scene.sample;
    heap.start();
    state.ResumeTiming();
    work(scene.registry, std::move(sample));
    state.PauseTiming();
    state.counters["allocations"] = static_cast<double>(heap.count);
    state.counters["peak_KiB"] = static_cast<double>(heap.peak) / 1024;
    state.ResumeTiming();
  }
}

void collecting(benchmark::State& state) {
  of_samples(state, [](const Registry& registry, Sample sample) {
    Family part;
    for (Families all(registry, std::move(sample)); all.next(part);) benchmark::DoNotOptimize(part);
  });
}
BENCHMARK(collecting)->Unit(benchmark::kMillisecond);

void collecting_and_writing(benchmark::State& state) {
  std::size_t bytes = 0;
  of_samples(state, [&](const Registry& registry, Sample sample) {
    bytes = 0;
    std::string text;
    for (Exposition all(registry, std::move(sample)); all.next(text); text.clear()) bytes += text.size();
  });
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(collecting_and_writing)->Unit(benchmark::kMillisecond);

// The same scrape as an Exposer of prometheus-cpp performs it.
class Source final : public SampleSource {
 public:
  explicit Source(Sample sample) : sample_(std::move(sample)) {}
  Sample sample() const override { return std::move(sample_); }

 private:
  mutable Sample sample_;
};

void collecting_for_the_library(benchmark::State& state) {
  of_samples(state, [](const Registry& registry, Sample sample) {
    const Source source(std::move(sample));
    benchmark::DoNotOptimize(PrometheusCollectable(registry, source).Collect());
  });
}
BENCHMARK(collecting_for_the_library)->Unit(benchmark::kMillisecond);

void collecting_and_writing_by_the_library(benchmark::State& state) {
  of_samples(state, [](const Registry& registry, Sample sample) {
    const Source source(std::move(sample));
    benchmark::DoNotOptimize(prometheus::TextSerializer().Serialize(PrometheusCollectable(registry, source).Collect()));
  });
}
BENCHMARK(collecting_and_writing_by_the_library)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace carpool::metrics

BENCHMARK_MAIN();
