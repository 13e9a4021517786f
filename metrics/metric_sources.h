// The functions that add the points of the catalog's metrics.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "metrics/point_merger.h"
#include "metrics/registry.h"
#include "metrics/sample.h"

namespace carpool::metrics::sources {

// The values of an origin that are exported even if they are zero, because rules divide by them or graphs show them.
// Other zeros are omitted: the series of many rarely used origins would add up.
inline constexpr std::array<std::string_view, 2> kHeldStates{"idle", "borrowed"};
inline constexpr std::array<std::string_view, 1> kUsable{"usable"};
inline constexpr std::array<std::string_view, 0> kNone{};

// ---- from a pool's snapshot ----
template <auto Member>
void number(PointMerger& points, const OriginSample& origin) {
  points.add({}, origin.*Member);
}
template <auto Member>
void rare(PointMerger& points, const OriginSample& origin) {
  if (origin.*Member != 0) points.add({}, origin.*Member);
}
template <auto Member, const auto& always>
void parts(PointMerger& points, const OriginSample& origin) {
  for (const Labelled& part : origin.*Member) {
    const bool sent = part.value != 0 || std::find(always.begin(), always.end(), part.label) != always.end();
    if (sent) points.add({part.label}, part.value);
  }
}
template <auto Member>
void classes(PointMerger& points, const OriginSample& origin) {
  for (const ClassSample& one : origin.classes) points.add({one.name}, one.*Member);
}

inline void leases(PointMerger& points, const OriginSample& origin) {
  if (origin.borrows != origin.restores) points.add({}, origin.borrows - origin.restores);
}
inline void longest_wait(PointMerger& points, const OriginSample& origin) {
  if (origin.waiting != 0) points.at_least_seconds({}, origin.longest_wait_nanoseconds);
}
template <auto Member>
void connection_times(PointMerger& points, const OriginSample& origin) {
  if (origin.peak < kMinConnections) return;
  const TimesSample& sample = origin.*Member;
  HistogramTotals totals{kAgeBounds, {}, sample.nanoseconds};
  std::copy(sample.counts.begin(), sample.counts.end(), totals.buckets.begin());
  points.add_distribution(totals, origin.peak >= kMinValues);
}

template <auto Member>
void addresses(PointMerger& points, const OriginSample& origin) {
  for (const AddressSample& one : origin.each_address) points.add({one.address}, one.*Member);
}
inline void response_times(PointMerger& points, const OriginSample& origin) {
  for (const AddressSample& one : origin.each_address) {
    if (one.response_nanoseconds != 0) points.add_seconds({one.address}, one.response_nanoseconds);
  }
}

// ---- from a loop's counts for an origin ----
inline std::string code_label(std::uint16_t code) {
  if (code == kNoCode) return "none";
  if (code == kOtherCode) return "other";
  return std::to_string(code);
}
inline void requests(PointMerger& points, const OriginShard& shard) {
  shard.requests.for_each([&](MethodId method, std::uint16_t code, std::uint64_t count) {
    points.add({kMethods[method], code_label(code)}, count);
  });
}
template <auto Member>
void histogram_of(PointMerger& points, const OriginShard& shard) {
  points.add((shard.*Member).read());
}
template <auto Member>
void cell(PointMerger& points, const OriginShard& shard) {
  if (const std::uint64_t count = (shard.*Member).read(); count != 0) points.add({}, count);
}
template <auto Member>
void seconds(PointMerger& points, const OriginShard& shard) {
  if (const std::uint64_t spent = (shard.*Member).read(); spent != 0) points.add_seconds({}, spent);
}
template <auto Member, const auto& names>
void cells(PointMerger& points, const OriginShard& shard) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const std::uint64_t count = (shard.*Member)[i].read(); count != 0) points.add({names[i]}, count);
  }
}

// ---- from the process ----
template <auto Member>
void total(PointMerger& points, const Registry&, const Sample& sample) {
  points.set({}, static_cast<double>(sample.*Member));
}
inline void clients(PointMerger& points, const Registry& registry, const Sample&) {
  points.set({}, static_cast<double>(registry.client_count()));
}
inline void stale_credentials(PointMerger& points, const Registry& registry, const Sample&) {
  points.set({}, static_cast<double>(registry.stale_credentials()));
}
template <auto Count, const auto& names>
void counts(PointMerger& points, const Registry& registry, const Sample&) {
  for (std::size_t i = 0; i < names.size(); ++i) points.add({names[i]}, (registry.*Count)(i));
}
template <class Event, const auto& names>
void events(PointMerger& points, const Registry& registry, const Sample&) {
  for (std::size_t i = 0; i < names.size(); ++i) points.add({names[i]}, registry.count(static_cast<Event>(i)));
}
inline void otlp_requests(PointMerger& points, const Registry& registry, const Sample&) {
  registry.for_each_otlp_request([&](auto signal, auto end, auto count) { points.add({signal, end}, count); });
}
// A member of a part of the sample, if there is that part.
template <auto Part, auto Member>
void number_of(PointMerger& points, const Registry&, const Sample& sample) {
  if (const auto& part = sample.*Part) points.set({}, static_cast<double>((*part).*Member));
}
template <auto Part, auto Member>
void parts_of(PointMerger& points, const Registry&, const Sample& sample) {
  if (const auto& part = sample.*Part) points.add_all((*part).*Member);
}
inline void queue_wait(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.exec) points.add(sample.exec->queue_wait);
}
template <auto Member>
void loop_times(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.exec) return;
  for (const LoopSample& loop : sample.exec->loops) points.add(loop.*Member);
}
inline void loop_busy(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.exec) return;
  for (std::size_t i = 0; i < sample.exec->loops.size(); ++i) {
    points.add_seconds({std::to_string(i)}, sample.exec->loops[i].turns.nanoseconds);
  }
}
template <auto Member>
void sample_parts(PointMerger& points, const Registry&, const Sample& sample) {
  points.add_all(sample.*Member);
}
inline void overload_used(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.overload) return;
  points.set({"memory"}, sample.overload->memory_ratio);
  points.set({"descriptors"}, sample.overload->descriptor_ratio);
}
inline void reloads(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  points.add({"applied"}, sample.admin->reloads_applied);
  points.add({"refused"}, sample.admin->reloads_refused);
}
inline void certificate_ends(PointMerger& points, const Registry&, const Sample& sample) {
  for (const CertificateSample& one : sample.certificates) points.set({one.use, one.file}, one.end);
}
// The origins beyond max_origins share a label here, too.
inline void intercept_refusals(PointMerger& points, const Registry& registry, const Sample& sample) {
  if (!sample.intercept) return;
  for (const RefusalSample& one : sample.intercept->refusals) {
    const bool shares = registry.slot_of(one.origin) == kOtherOrigin;
    points.add({shares ? std::string_view("other") : std::string_view(one.origin), one.offer, one.alert}, one.refusals);
  }
}
inline void intercept_minted(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.intercept) return;
  points.add({"minted"}, sample.intercept->minted);
  points.add({"failed"}, sample.intercept->failed);
}
inline void intercept_expiry(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.intercept && sample.intercept->authority_seconds) points.set({}, *sample.intercept->authority_seconds);
}
inline void admin_shed(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  for (const AdminSample::Listener& listener : sample.admin->listeners) {
    points.add({listener.name, "idle"}, listener.ended_for_others);
    points.add({listener.name, "busy"}, listener.refused);
  }
}
inline void admin_abuse(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  for (const auto& [listener, kind, count] : sample.admin->abuses) points.add({listener, kind}, count);
}
inline void build(PointMerger& points, const Registry&, const Sample& sample) {
  points.set({sample.build.version, sample.build.compiler, sample.build.build}, 1);
}

}  // namespace carpool::metrics::sources
