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

void LoopStats::record_refused(std::string_view peer, const Fault& fault, std::uint16_t status) {
  metrics::RequestInfo counted;
  counted.status = status;
  metrics_.record_request(loop_.id(), metrics::kNoOrigin, counted);
  if (!log::access_enabled()) return;
  log::AccessEntry entry;
  entry.began = loop_.now();
  entry.client = peer;
  entry.status = status;
  entry.fault = fault.detail;
  write_line(entry);
}

void LoopStats::write_line(const log::AccessEntry& entry) {
  log::AccessEntry numbered = entry;
  numbered.loop = loop_.id();
  numbered.request = ++requests_;
  if (log_.write(numbered)) flusher_.arm(loop_.now() + log::AccessLog::kFlushAfter);
}

void LoopStats::count_retry(metrics::OriginSlot origin, std::string_view reason) {
  metrics_.record_retry(loop_.id(), origin, reason);
}

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
  log::debug("listener", "too many TLS messages without data", {{"client", client}});
}

void LoopStats::count_shed(metrics::Shed what) {
  metrics_.record_shed(loop_.id(), what);
}

void LoopStats::count_egress(metrics::Egress decision) {
  metrics_.record_egress(loop_.id(), decision);
}

void LoopStats::count_given_up(metrics::GivenUp why) {
  metrics_.record_given_up(loop_.id(), why);
}

void LoopStats::count_retry_denied(metrics::OriginSlot origin) {
  metrics_.record_retry_denied(loop_.id(), origin);
}

void LoopStats::count_hedge(metrics::OriginSlot origin, metrics::Hedge result) {
  metrics_.record_hedge(loop_.id(), origin, result);
}

void LoopStats::count_bound(metrics::OriginSlot origin, metrics::Bound what) {
  metrics_.record_bound(loop_.id(), origin, what);
}

void LoopStats::count_limited(metrics::OriginSlot origin, metrics::Limit what) {
  metrics_.record_limited(loop_.id(), origin, what);
}

void LoopStats::count_ejections(metrics::OriginSlot origin, std::uint64_t n) {
  metrics_.record_ejections(loop_.id(), origin, n);
}

void LoopStats::count_refused(metrics::OriginSlot origin) {
  metrics_.record_refused(loop_.id(), origin);
}

void LoopStats::count_token_request(metrics::OriginSlot origin, metrics::TokenRequest end) {
  metrics_.record_token_request(loop_.id(), origin, end);
}

void LoopStats::open_counters(metrics::OriginSlot origin) {
  metrics_.open_counters(loop_.id(), origin);
}

void LoopStats::count_intercept(metrics::OriginSlot origin, metrics::Intercept what) {
  metrics_.record_intercept(loop_.id(), origin, what);
}

void LoopStats::count_client_handshake(metrics::ClientHandshake end) {
  metrics_.record_client_handshake(loop_.id(), end);
}

void LoopStats::count_parent_refusal(std::uint16_t status) {
  using Refusal = metrics::ParentRefusal;
  Refusal what = Refusal::other;
  if (status == 0) what = Refusal::unanswered;
  if (status >= 400 && status < 500) what = status == 407 ? Refusal::credentials : Refusal::forbidden;
  if (status >= 500) what = Refusal::unavailable;
  metrics_.record_parent_refusal(loop_.id(), what);
}

void LoopStats::count_proxy_header(metrics::ProxyHeader what) {
  metrics_.record_proxy_header(loop_.id(), what);
}

void LoopStats::count_authentication(metrics::Authentication result) {
  metrics_.record_authentication(loop_.id(), result);
}

void LoopStats::client_came() {
  metrics_.clients().add(loop_.id());
}
void LoopStats::client_left() {
  metrics_.clients().sub(loop_.id());
}

// A shortage of descriptors is logged at intervals, not once per client.
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
  count_shed(metrics::Shed::accepts);
  if (!may_log(last_accept_log_, loop_.now())) return;
  log::warn("listener", "cannot accept clients", {{"error", "no file descriptor left"}});
}

void LoopStats::note_accept_failure(int error) {
  if (!may_log(last_accept_log_, loop_.now())) return;
  log::warn("listener", "cannot accept clients", {{"error", std::strerror(error)}});  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace carpool::proxy
