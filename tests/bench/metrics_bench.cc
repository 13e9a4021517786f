// metrics_bench: the cost of a scrape: 200 origins with every series.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "metrics/prometheus.h"

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
    state.ResumeTiming();
    work(scene.registry, std::move(sample));
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

}  // namespace
}  // namespace carpool::metrics

BENCHMARK_MAIN();
