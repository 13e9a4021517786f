// Registry: every count that loops write while they serve, by origin and loop. One call per request, no lock, no shared
// cache line, and no allocation except for a loop's first request to an origin.
//
// Labels are bounded: the first `max_origins` origins keep theirs for the life of the process, and so do configured
// origins (at most max_origins); all others share "other". The choice is made when counting and never changes, so no
// counter ever decreases or jumps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "metrics/event_counters.h"
#include "metrics/events.h"
#include "metrics/gauge.h"
#include "metrics/origin_shard.h"

namespace carpool::metrics {

class Registry {
 public:
  Registry(unsigned loops, std::uint32_t max_origins);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // ---- any thread ----
  OriginSlot add_origin(const std::string& label);  // equal labels share a slot
  // Reserves a slot for the label of a configured origin. It is exported once something is counted.
  void keep_origin(const std::string& label);
  OriginSlot slot_of(const std::string& label) const;  // unknown: kOtherOrigin
  void record_dns(Dns what, std::uint64_t n) {         // rare: loops share the cell; relaxed
    dns_[static_cast<std::size_t>(what)].fetch_add(n, std::memory_order_relaxed);
  }

  void record_credential_file(CredentialFile what) {  // likewise
    credential_files_[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
  }
  void record_tls_flood(TlsPeer peer) {  // likewise
    tls_floods_[static_cast<std::size_t>(peer)].fetch_add(1, std::memory_order_relaxed);
  }
  void set_stale_credentials(std::uint64_t files) { stale_credentials_.store(files, std::memory_order_relaxed); }

  // ---- on loop `loop`'s thread ----
  template <class Event>
  void record(LoopId loop, Event what, std::uint64_t n = 1) {
    std::get<EventCounters<Event>>(events_).add(loop, what, n);
  }
  template <class Event>
  void record(LoopId loop, OriginSlot origin, Event what) {
    shard(loop, origin).cells(what)[static_cast<std::size_t>(what)].add();
  }
  void record_request(LoopId loop, OriginSlot origin, const RequestInfo& info);
  void record_reset(LoopId loop, OriginSlot origin, std::string_view code);  // an HTTP/2 error name; unknown: other
  void record_handshake(LoopId loop, OriginSlot origin, Duration took);
  void record_abuse(LoopId loop, std::string_view kind);
  void record_otlp_request(LoopId loop, OtlpSignal signal, OtlpRequest end) {
    otlp_requests_[static_cast<std::size_t>(signal) * kOtlpRequests.size() + static_cast<std::size_t>(end)].add(loop);
  }
  void record_refused(LoopId loop, OriginSlot origin) { shard(loop, origin).refused.add(); }
  void open_counters(LoopId loop, OriginSlot origin) { shard(loop, origin); }
  void record_retry_denied(LoopId loop, OriginSlot origin) { shard(loop, origin).retries_denied.add(); }
  void record_ejections(LoopId loop, OriginSlot origin, std::uint64_t n) { shard(loop, origin).ejections.add(n); }
  Gauge& clients() { return clients_; }

  // ---- scrapes, any thread ----
  std::uint64_t client_count() const { return clients_.total(); }
  std::uint64_t dns_count(std::size_t what) const { return dns_[what].load(std::memory_order_relaxed); }
  std::uint64_t credential_file_count(std::size_t what) const {
    return credential_files_[what].load(std::memory_order_relaxed);
  }
  std::uint64_t tls_flood_count(std::size_t peer) const { return tls_floods_[peer].load(std::memory_order_relaxed); }
  std::uint64_t stale_credentials() const { return stale_credentials_.load(std::memory_order_relaxed); }
  std::uint64_t abuse_count(std::size_t kind) const { return abuses_[kind].total(); }
  template <class Event>
  std::uint64_t count(Event what) const {
    return std::get<EventCounters<Event>>(events_).total(what);
  }
  // Calls visit(signal, end, count).
  template <class Visit>
  void for_each_otlp_request(Visit visit) const {
    for (std::size_t i = 0; i < otlp_requests_.size(); ++i) {
      visit(kOtlpSignals[i / kOtlpRequests.size()], kOtlpRequests[i % kOtlpRequests.size()], otlp_requests_[i].total());
    }
  }
  // Calls visit(label, shard) once for each existing shard of a loop.
  template <class Visit>
  void for_each_shard(Visit visit) const {
    for (OriginSlot slot = 0; visit_origin(slot, visit); ++slot) {
    }
  }
  // As for_each_shard(), for one origin; slots count from 0 and are stable. Returns false if there is no such slot.
  template <class Visit>
  bool visit_origin(OriginSlot slot, Visit&& visit) const {
    const Held lock(mutex_);
    if (slot >= used_) return false;
    for (unsigned loop = 0; loop < loops_; ++loop) {
      // acquire: pairs with the release in make_shard.
      const OriginShard* shard = origins_[slot].shards[loop].load(std::memory_order_acquire);
      if (shard != nullptr) visit(origins_[slot].label, *shard);
    }
    return true;
  }

 private:
  struct Origin {
    std::string label;
    std::unique_ptr<std::atomic<OriginShard*>[]> shards;  // one per loop, owned
  };
  OriginShard& shard(LoopId loop, OriginSlot origin) {
    CARPOOL_ASSERT(loop < loops_ && origin < capacity_);
    // relaxed: written by this loop.
    OriginShard* shard = origins_[origin].shards[loop].load(std::memory_order_relaxed);
    return shard != nullptr ? *shard : make_shard(loop, origin);
  }
  OriginShard& make_shard(LoopId loop, OriginSlot origin);
  OriginSlot open_slot(const std::string& label) REQUIRES(mutex_);
  static constexpr std::uint32_t kFirst = 2;  // slots "none" and "other"

  const unsigned loops_;
  const std::uint32_t max_origins_, capacity_;
  std::unique_ptr<Origin[]> origins_;  // a slot is complete before its number is published
  Gauge clients_;
  std::tuple<EventCounters<Shed>, EventCounters<ClientHandshake>, EventCounters<ParentRefusal>,
             EventCounters<ProxyHeader>, EventCounters<Authentication>, EventCounters<GivenUp>, EventCounters<OtlpSpan>,
             EventCounters<ClientLimit>, EventCounters<Egress>>
      events_;
  std::vector<Counter> otlp_requests_;  // for each signal, in the order of kOtlpRequests
  std::array<std::atomic<std::uint64_t>, kDns.size()> dns_{};
  std::array<std::atomic<std::uint64_t>, kCredentialFiles.size()> credential_files_{};
  std::array<std::atomic<std::uint64_t>, kTlsPeers.size()> tls_floods_{};
  std::atomic<std::uint64_t> stale_credentials_{0};
  std::vector<Counter> abuses_;  // in the order of kAbuses
  mutable Mutex mutex_;
  std::uint32_t used_ GUARDED_BY(mutex_) = 0;
  std::uint32_t kept_ GUARDED_BY(mutex_) = 0;  // those of configured origins
  std::unordered_map<std::string, OriginSlot> slots_ GUARDED_BY(mutex_);
};

}  // namespace carpool::metrics
