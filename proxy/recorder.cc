#include "proxy/recorder.h"

#include <cstring>

#include "proxy/downstream/requester.h"
#include "proxy/exchange.h"
#include "proxy/house.h"
#include "proxy/log/levels.h"
#include "proxy/log/log.h"
#include "proxy/trace_context.h"

namespace carpool::proxy {

namespace {
log::Format format_of(const config::Log& settings) {
  return settings.format == config::LogFormat::text ? log::Format::text : log::Format::json;
}
}  // namespace

Recorder::Recorder(House& house, exec::Loop& loop)
    : metrics_(house.metrics()),
      loop_(loop),
      log_(format_of(house.config().log)),
      flusher_(exec::Timer::bind<&Recorder::flush>(loop, *this)) {}

void Recorder::record(const Exchange& exchange, const Requester& client) {
  const ExchangeFacts& facts = exchange.facts();
  const http::RequestHead& request = exchange.request();
  const Instant now = loop_.now();
  const bool asked = facts.asked_pool;

  metrics::RequestFacts counted;
  counted.method = request.method;
  counted.status = facts.status;
  counted.total = now - facts.began;
  if (asked) counted.waited = facts.waited;
  if (facts.uses_before != 0 && facts.origin != nullptr) {
    counted.reused = true;
    counted.saved = facts.origin->dial_cost.time();
    counted.saved_cpu = facts.origin->dial_cost.cpu();
  }
  const metrics::OriginSlot slot = facts.origin != nullptr ? facts.origin->slot : metrics::kNoOrigin;
  metrics_.record_request(loop_.id(), slot, counted);
  if (!worth_a_line(facts)) return;

  log::AccessEntry entry;
  entry.began = facts.began;
  entry.client = client.peer();
  entry.method = request.method;
  entry.target = request.target;
  if (facts.origin != nullptr) entry.origin = facts.origin->destination->label();
  entry.status = facts.status;
  entry.bytes_in = facts.bytes_in;
  entry.bytes_out = facts.bytes_out;
  entry.connection = facts.connection;
  entry.reuse = facts.uses_before;
  if (asked) entry.waited = facts.waited;
  if (facts.head_back != Instant{}) entry.upstream = facts.head_back - facts.leased;
  entry.total = counted.total;
  if (facts.opened) entry.opened = pool::name(*facts.opened);
  entry.retries = facts.retries;
  entry.trace = trace_id(request.fields.get("traceparent"));
  if (facts.fault) entry.fault = facts.fault->detail;
  write_line(entry);
}

bool Recorder::worth_a_line(const ExchangeFacts& facts) {
  if (!log::access_enabled()) return false;
  if (facts.fault || facts.status == 0 || facts.status >= 500 || facts.retries != 0) return true;
  if (++unsaid_ < log::access_sample()) return false;
  unsaid_ = 0;
  return true;
}

void Recorder::record_refused(const Requester& client, const Fault& fault, std::uint16_t status) {
  metrics::RequestFacts counted;
  counted.status = status;
  metrics_.record_request(loop_.id(), metrics::kNoOrigin, counted);
  if (!log::access_enabled()) return;
  log::AccessEntry entry;
  entry.began = loop_.now();
  entry.client = client.peer();
  entry.status = status;
  entry.fault = fault.detail;
  write_line(entry);
}

void Recorder::write_line(const log::AccessEntry& entry) {
  log::AccessEntry numbered = entry;
  numbered.request = next_request();
  if (log_.write(numbered)) flusher_.arm(loop_.now() + log::AccessLog::kFlushAfter);
}

// Unique without asking another loop: the loop's number above its own count; below 2^53, where JSON readers still
// count.
std::uint64_t Recorder::next_request() {
  return std::uint64_t{loop_.id()} << 40 | ++requests_;
}

void Recorder::count_retry(const OriginContext& origin, Proof proof) {
  metrics_.record_retry(loop_.id(), origin.slot, name(proof));
}

void Recorder::count_reset(const OriginContext& origin, http::H2Error code) {
  metrics_.record_reset(loop_.id(), origin.slot, http::h2_error_name(code));
}

void Recorder::observe_handshake(const OriginContext& origin, Duration took) {
  metrics_.record_handshake(loop_.id(), origin.slot, took);
}

void Recorder::count_abuse(http::H2Abuse abuse) {
  metrics_.record_abuse(loop_.id(), http::h2_abuse_name(abuse));
}

void Recorder::count_shed(metrics::Shed what) {
  metrics_.record_shed(loop_.id(), what);
}

void Recorder::count_given_up(metrics::GivenUp why) {
  metrics_.record_given_up(loop_.id(), why);
}

void Recorder::count_retry_denied(const OriginContext& origin) {
  metrics_.record_retry_denied(loop_.id(), origin.slot);
}

void Recorder::count_bound(const OriginContext& origin, metrics::Bound what) {
  metrics_.record_bound(loop_.id(), origin.slot, what);
}

void Recorder::count_limited(const OriginContext& origin, metrics::Limit what) {
  metrics_.record_limited(loop_.id(), origin.slot, what);
}

void Recorder::count_ejections(const OriginContext& origin, std::uint64_t n) {
  metrics_.record_ejections(loop_.id(), origin.slot, n);
}

void Recorder::client_came() {
  metrics_.clients().add(loop_.id());
}
void Recorder::client_left() {
  metrics_.clients().sub(loop_.id());
}

// Out of descriptors: said once in a while, not once per client.
namespace {
// At most one line in ten seconds.
bool may_complain(Instant& last, Instant now) {
  if (last != Instant{} && now - last < std::chrono::seconds(10)) return false;
  last = now;
  return true;
}
}  // namespace

void Recorder::on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view host) {
  metrics_.record_dns(what, n);
  if (what == metrics::Dns::resolv_conf_changed) return log::info("dns", "resolv.conf has changed and is followed");
  if (what != metrics::Dns::addresses_left_out || !may_complain(last_dns_complaint_, loop_.now())) return;
  log::warn("dns", "a name has more addresses than are kept", {{"host", host}, {"left_out", n}});
}

void Recorder::note_accept_pause() {
  count_shed(metrics::Shed::accepts);
  if (!may_complain(last_accept_complaint_, loop_.now())) return;
  log::warn("listener", "cannot accept clients", {{"error", "too few descriptors are left"}});
}

void Recorder::note_accept_failure(int error) {
  if (!may_complain(last_accept_complaint_, loop_.now())) return;
  log::warn("listener", "cannot accept clients", {{"error", std::strerror(error)}});  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace carpool::proxy
