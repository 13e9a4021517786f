// metrics_full_scrape.h: a registry and a sample with points of every metric of the catalog, and with labels and values
// that are hard to write.
#pragma once

#include <string>

#include "metrics/families.h"
#include "metrics/registry.h"
#include "metrics/sample.h"

namespace carpool::metrics {

inline constexpr std::uint64_t kHuge = 9'007'199'254'740'993;  // a double rounds it

inline void record_everything(Registry& registry, const std::string& origin) {
  const OriginSlot slot = registry.add_origin(origin);
  for (std::uint64_t i = 0; i < kMinValues; ++i) {
    registry.record_request(0, slot,
                            {"GET", 200, std::chrono::microseconds(700), std::chrono::microseconds(1), true,
                             std::chrono::milliseconds(3), std::chrono::microseconds(400)});
    registry.record_handshake(0, slot, std::chrono::milliseconds(1));
  }
  registry.record_request(0, slot, {"BREW", 0, std::chrono::seconds(90), {}});
  registry.record(0, slot, RetryReason::not_sent);
  registry.record_retry_denied(0, slot);
  registry.record(0, slot, Hedge::won);
  registry.record_reset(0, slot, "CANCEL");
  registry.record_ejections(0, slot, kHuge);
  registry.record(0, slot, Bound::attempts);
  registry.record(0, slot, Limit::requests);
  registry.record_refused(0, slot);
  registry.record(0, slot, TokenRequest::refused);
  registry.record(0, OtlpSpan::buffer_full, 3);
  registry.record_otlp_request(0, OtlpSignal::metrics, OtlpRequest::timeout);
  registry.record(0, slot, Intercept::refused);
}

inline OriginSample full_origin(std::string label) {
  OriginSample origin;
  origin.label = std::move(label);
  origin.borrows = kHuge;
  origin.peak = kMinValues;
  origin.waiting = 1, origin.longest_wait_nanoseconds = 5;
  origin.ages = origin.idle_times = {{1, 0, 0, 0, 0, 0, 0, 0, 2}, 8'000'000'000'000};
  origin.probing = origin.undialed = origin.paused = origin.cooling_down = origin.cool_downs = 1;
  origin.opened = {{"first", 1}, {"all_busy", 2}};
  origin.closed = {{"idle", 1}};
  origin.failures = {{"dns", 0}, {"refused", 3}};
  origin.size_changes = {{"waits", 4}};
  origin.connections = {{"connecting", 0}, {"idle", 1}};
  origin.addresses = {{"usable", 3}, {"ejected", 0}};
  origin.each_address = {{"10.0.0.1:80", 2, 1, kHuge, 1'500'000}};
  origin.classes = {{"batch \"low\"\\\n", 4, 5, 6}};
  return origin;
}

inline Sample full_sample() {
  Sample sample;
  sample.exec =
      ExecSample{{{"pc", 5}}, {{"took_over", 1}}, {{"idle", 2}}, 2, 8, 3, true, {}, {LoopSample{}, LoopSample{}}, 9};
  for (LoopSample& loop : sample.exec->loops) {
    loop.turns.buckets[2] = loop.delays.buckets[3] = 6;
    loop.turns.nanoseconds = loop.delays.nanoseconds = 1'234'567;
  }
  sample.exec->queue_wait.buckets[1] = 4;
  sample.exec->queue_wait.nanoseconds = 123'456'789;
  sample.process = ProcessSample{0.1 + 0.2, 1.7e9 + 0.123456789, kHuge, 1ULL << 63U, 5, 1024};
  sample.build = {"0.1.0", "g++ \"12\"\n\\", "Release"};
  sample.overload = OverloadSample{1, 1.0 / 3, 0, 7, 1ULL << 40U};
  sample.admin = AdminSample{1, 2, 3, 7, 8, {{"admin", 4, 5}}, {{"admin", "resets", 1}}, {{"full", 1}}, {{"file", 6}}};
  sample.intercept = InterceptSample{3, 1, 2, 1.0 / 3, {{"https://a.test", "tls13_h1", "unknown_ca", 4}}};
  sample.certificates = {{"listener", "/etc/\"tls\"\\\n.crt", 1.7e9 + 0.5}};
  sample.reviews = {{"injected", 1}};
  sample.webhook_shed = {{"handshake", 1}};
  sample.webhook_limits = {{"body", 1}};
  return sample;
}

}  // namespace carpool::metrics
