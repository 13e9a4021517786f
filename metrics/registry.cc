#include "metrics/registry.h"

#include <algorithm>

namespace carpool::metrics {

namespace {
constexpr std::uint32_t kMaxLate = 1000;
}

Registry::Registry(unsigned loops, std::uint32_t max_origins)
    : loops_(loops),
      max_origins_(max_origins),
      // A reload may add configured origins when others hold every place.
      capacity_(kFirst + max_origins + std::min(max_origins, kMaxLate)),
      origins_(std::make_unique<Origin[]>(capacity_)),
      clients_(loops),
      events_(EventCounters<Shed>(loops, kSheds.size()),
              EventCounters<ClientHandshake>(loops, kClientHandshakes.size()),
              EventCounters<ParentRefusal>(loops, kParentRefusals.size()),
              EventCounters<ProxyHeader>(loops, kProxyHeaders.size()),
              EventCounters<Authentication>(loops, kAuthentications.size()),
              EventCounters<GivenUp>(loops, kGivenUps.size()), EventCounters<OtlpSpan>(loops, kOtlpSpans.size()),
              EventCounters<ClientLimit>(loops, kClientLimits.size()), EventCounters<Egress>(loops, kEgress.size())) {
  abuses_.reserve(kAbuses.size());
  for (std::size_t i = 0; i < kAbuses.size(); ++i) abuses_.emplace_back(loops);
  otlp_requests_.reserve(kOtlpSignals.size() * kOtlpRequests.size());
  for (std::size_t i = 0; i < kOtlpSignals.size() * kOtlpRequests.size(); ++i) otlp_requests_.emplace_back(loops);
  open_slot("none");
  open_slot("other");
}

Registry::~Registry() {
  for (OriginSlot slot = 0; slot < used_; ++slot) {
    for (unsigned loop = 0; loop < loops_; ++loop) {
      const std::unique_ptr<OriginShard> owned(origins_[slot].shards[loop].load(std::memory_order_acquire));
    }
  }
}

OriginSlot Registry::open_slot(const std::string& label) {
  Origin& origin = origins_[used_];
  origin.label = label;
  origin.shards = std::make_unique<std::atomic<OriginShard*>[]>(loops_);
  slots_.emplace(label, used_);
  return used_++;
}

OriginSlot Registry::add_origin(const std::string& label) {
  const Held lock(mutex_);
  const auto known = slots_.find(label);
  if (known != slots_.end()) return known->second;
  return used_ < kFirst + max_origins_ ? open_slot(label) : kOtherOrigin;
}

void Registry::keep_origin(const std::string& label) {
  const Held lock(mutex_);
  if (slots_.count(label) != 0 || kept_ == max_origins_ || used_ == capacity_) return;
  ++kept_;
  open_slot(label);
}

OriginSlot Registry::slot_of(const std::string& label) const {
  const Held lock(mutex_);
  const auto known = slots_.find(label);
  return known == slots_.end() ? kOtherOrigin : known->second;
}

OriginShard& Registry::make_shard(LoopId loop, OriginSlot origin) {
  auto made = std::make_unique<OriginShard>();
  // release: a scrape that sees the pointer (acquire in visit_origin) sees the zeroed cells.
  origins_[origin].shards[loop].store(made.get(), std::memory_order_release);
  return *made.release();
}

void Registry::record_request(LoopId loop, OriginSlot origin, const RequestInfo& info) {
  OriginShard& mine = shard(loop, origin);
  mine.requests.add(method_id(info.method), info.status);
  mine.request.observe(info.total);
  if (info.waited) mine.wait.observe(*info.waited);
  if (!info.reused) return;
  mine.saved_dials.add();
  mine.saved_nanoseconds.add(static_cast<std::uint64_t>(info.saved.count()));
  mine.saved_cpu_nanoseconds.add(static_cast<std::uint64_t>(info.saved_cpu.count()));
}

void Registry::record_reset(LoopId loop, OriginSlot origin, std::string_view code) {
  const auto found = std::min(std::find(kResets.begin(), kResets.end(), code), kResets.end() - 1);
  shard(loop, origin).resets[static_cast<std::size_t>(found - kResets.begin())].add();
}

void Registry::record_abuse(LoopId loop, std::string_view kind) {
  const auto found = std::find(kAbuses.begin(), kAbuses.end(), kind);
  CARPOOL_ASSERT(found != kAbuses.end());
  abuses_[static_cast<std::size_t>(found - kAbuses.begin())].add(loop);
}

void Registry::record_handshake(LoopId loop, OriginSlot origin, Duration took) {
  shard(loop, origin).handshake.observe(took);
}

}  // namespace carpool::metrics
