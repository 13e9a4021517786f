#include "proxy/telemetry/loop_stats.h"

#include <cstring>

#include "exec/loop.h"
#include "metrics/registry.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy {

LoopStats::LoopStats(metrics::Registry& metrics, log::Format format, exec::Loop& loop)
    : metrics_(metrics), loop_(loop), log_(format), flusher_(exec::Timer::bind<&LoopStats::flush>(loop, *this)) {}

bool LoopStats::wants_peers() {
  return log::clients_wanted();
}

void LoopStats::count_request(metrics::OriginSlot origin, const metrics::RequestInfo& info) {
  metrics_.record_request(loop_.id(), origin, info);
}

bool LoopStats::should_log(bool ordinary) {
  if (!log::access_enabled()) return false;
  if (!ordinary) return true;
  if (++unlogged_ < log::access_sample()) return false;
  unlogged_ = 0;
  return true;
}

void LoopStats::record_refused(std::string_view peer, const Fault& fault, std::uint16_t status,
                               std::optional<std::uint16_t> grpc_status) {
  metrics::RequestInfo counted;
  counted.status = status;
  metrics_.record_request(loop_.id(), metrics::kNoOrigin, counted);
  if (!log::access_enabled()) return;
  log::AccessEntry entry;
  entry.began = loop_.now();
  entry.client = peer;
  entry.status = status;
  entry.grpc_status = grpc_status;
  entry.fault = fault.detail;
  write_line(entry);
}

void LoopStats::write_line(const log::AccessEntry& entry) {
  log::AccessEntry numbered = entry;
  numbered.loop = loop_.id();
  numbered.request = ++requests_;
  if (log_.write(numbered)) flusher_.arm(loop_.now() + log::AccessLog::kFlushAfter);
}

template <class Event>
void LoopStats::count(Event what) {
  metrics_.record(loop_.id(), what);
}
template void LoopStats::count(metrics::Authentication);
template void LoopStats::count(metrics::ClientHandshake);
template void LoopStats::count(metrics::ClientLimit);
template void LoopStats::count(metrics::Egress);
template void LoopStats::count(metrics::GivenUp);
template void LoopStats::count(metrics::ProxyHeader);
template void LoopStats::count(metrics::Shed);

template <class Event>
void LoopStats::count(metrics::OriginSlot origin, Event what) {
  metrics_.record(loop_.id(), origin, what);
}
template void LoopStats::count(metrics::OriginSlot, metrics::Bound);
template void LoopStats::count(metrics::OriginSlot, metrics::Hedge);
template void LoopStats::count(metrics::OriginSlot, metrics::Intercept);
template void LoopStats::count(metrics::OriginSlot, metrics::Limit);
template void LoopStats::count(metrics::OriginSlot, metrics::RetryReason);
template void LoopStats::count(metrics::OriginSlot, metrics::TokenRequest);

void LoopStats::count_reset(metrics::OriginSlot origin, std::string_view error) {
  metrics_.record_reset(loop_.id(), origin, error);
}

void LoopStats::observe_handshake(metrics::OriginSlot origin, Duration took) {
  metrics_.record_handshake(loop_.id(), origin, took);
}

void LoopStats::count_abuse(std::string_view abuse) {
  metrics_.record_abuse(loop_.id(), abuse);
}

void LoopStats::note_tls_flood(std::string_view client) {
  metrics_.record_tls_flood(metrics::TlsPeer::client);
  log::debug("tls", "too many TLS messages without data", {{"client", client}});
}

void LoopStats::count_retry_denied(metrics::OriginSlot origin) {
  metrics_.record_retry_denied(loop_.id(), origin);
}

void LoopStats::count_ejections(metrics::OriginSlot origin, std::uint64_t n) {
  metrics_.record_ejections(loop_.id(), origin, n);
}

void LoopStats::count_refused(metrics::OriginSlot origin) {
  metrics_.record_refused(loop_.id(), origin);
}

void LoopStats::open_counters(metrics::OriginSlot origin) {
  metrics_.open_counters(loop_.id(), origin);
}

void LoopStats::count_parent_refusal(std::uint16_t status) {
  using Refusal = metrics::ParentRefusal;
  Refusal what = Refusal::other;
  if (status == 0) what = Refusal::unanswered;
  if (status >= 400 && status < 500) what = status == 407 ? Refusal::credentials : Refusal::forbidden;
  if (status >= 500) what = Refusal::unavailable;
  count(what);
}

void LoopStats::client_came() {
  metrics_.clients().add(loop_.id());
}
void LoopStats::client_left() {
  metrics_.clients().sub(loop_.id());
}

// A listener that cannot accept is logged at intervals, not once per client.
namespace {
// Returns true at most once in ten seconds.
bool may_log(Instant& last, Instant now) {
  if (last != Instant{} && now - last < std::chrono::seconds(10)) return false;
  last = now;
  return true;
}
}  // namespace

void LoopStats::count_dns(metrics::Dns what, std::uint64_t n) {
  metrics_.record_dns(what, n);
}

void LoopStats::note_accept_pause() {
  count(metrics::Shed::accepts);
  if (!may_log(last_accept_log_, loop_.now())) return;
  log::warn("listener", "cannot accept clients", {{"error", "no file descriptor left"}});
}

void LoopStats::note_full_listener(std::string_view address, std::uint64_t clients) {
  count(metrics::ClientLimit::connections);
  if (!may_log(last_full_log_, loop_.now())) return;
  log::warn("listener", "max_connections is reached: further clients wait until one leaves",
            {{"address", address}, {"max_connections", clients}});
}

void LoopStats::note_accept_failure(int error) {
  if (!may_log(last_accept_log_, loop_.now())) return;
  log::warn("listener", "cannot accept clients", {{"error", std::strerror(error)}});  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace carpool::proxy
