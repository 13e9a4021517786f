// The record of a finished exchange: one update of the metrics, and a line of the access log.
#include "pool/destination/destination.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/trace_context.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
metrics::RequestInfo counted(const ExchangeInfo& facts, std::string_view method, Instant now) {
  metrics::RequestInfo counted;
  counted.method = method;
  counted.status = facts.status;
  counted.total = now - facts.began;
  if (facts.asked_pool) counted.waited = facts.waited;
  if (facts.uses_before != 0 && facts.origin != nullptr) {
    counted.reused = true;
    counted.saved = facts.origin->connect_cost.time();
    counted.saved_cpu = facts.origin->connect_cost.cpu();
  }
  return counted;
}

metrics::Egress decision_of(const ExchangeInfo& facts) {
  const bool reported = facts.origin != nullptr && facts.origin->reported.load(std::memory_order_relaxed);
  return *facts.egress == metrics::Egress::allowed && reported ? metrics::Egress::reported : *facts.egress;
}

std::string_view protocol_of(const http::RequestHead& head) {
  if (head.method.empty()) return {};  // none was read
  switch (head.version) {
    case http::Version::http10:
      return "HTTP/1.0";
    case http::Version::http2:
      return "HTTP/2.0";
    default:
      return "HTTP/1.1";
  }
}

log::AccessEntry entry_of(const ExchangeInfo& facts) {
  log::AccessEntry entry;
  entry.began = facts.began;
  if (facts.origin != nullptr) entry.origin = facts.origin->destination->label();
  entry.status = facts.status;
  entry.grpc_status = facts.grpc_status;
  entry.bytes_in = facts.bytes_in;
  entry.bytes_out = facts.bytes_out;
  entry.connection = facts.connection;
  entry.reuse = facts.uses_before;
  entry.upstream_protocol = facts.upstream_h2 ? "HTTP/2.0" : "HTTP/1.1";
  entry.upstream_tls = facts.upstream_tls;
  if (facts.asked_pool) entry.waited = facts.waited;
  if (facts.head_back != Instant{}) entry.upstream = facts.head_back - facts.leased;
  if (facts.opened) entry.opened = pool::name(*facts.opened);
  entry.retries = facts.retries;
  entry.retried = facts.retried;
  entry.unrepeated = facts.unrepeated;
  if (facts.fault) entry.fault = facts.fault->detail;
  return entry;
}
}  // namespace

void Exchange::record() {
  const Instant now = context_.loop.now();
  const metrics::OriginSlot slot = info_.origin != nullptr ? info_.origin->slot : metrics::kNoOrigin;
  context_.stats.count_request(slot, counted(info_, request_.method, now));
  if (info_.egress) context_.stats.count_egress(decision_of(info_));
  if (request_values_->span) record_span(now);
  const bool ordinary = !info_.fault && info_.status != 0 && info_.status < 500 && info_.retries == 0;
  if (!context_.stats.should_log(ordinary)) return;
  log::AccessEntry entry = entry_of(info_);
  entry.client = client_stream_->peer();
  entry.protocol = protocol_of(request_);
  entry.tls = client_stream_->tls_version();
  entry.user = user_;
  entry.method = request_.method;
  entry.target = request_.target;
  entry.total = now - info_.began;
  entry.intercepted = client_stream_->listener().interception() != nullptr;
  if (const auto why = client_stream_->stays_tunnel()) {
    entry.tunnelled = metrics::kIntercepts[static_cast<std::size_t>(*why)];
  }
  entry.trace = trace_id(request_.fields.get("traceparent"));
  if (context_.stats.wants_fields()) {
    entry.referer = request_.fields.get("referer");
    entry.user_agent = request_.fields.get("user-agent");
  }
  context_.stats.write_line(entry);
}

}  // namespace carpool::proxy
