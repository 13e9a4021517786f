// Exchange, record: one update of the metrics and one line of the access log at the end.
#include "pool/destination/destination.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/trace_context.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
metrics::RequestInfo counted(const ExchangeInfo& info, std::string_view method, Instant now) {
  metrics::RequestInfo counted;
  counted.method = method;
  counted.status = info.status;
  counted.total = now - info.began;
  if (info.asked_pool) counted.waited = info.waited;
  if (info.uses_before != 0 && info.origin != nullptr) {
    counted.reused = true;
    counted.saved = info.origin->connect_cost.time();
    counted.saved_cpu = info.origin->connect_cost.cpu();
  }
  return counted;
}

metrics::Egress decision_of(const ExchangeInfo& info) {
  const bool reported = info.origin != nullptr && info.origin->reported.load(std::memory_order_relaxed);
  return *info.egress == metrics::Egress::allowed && reported ? metrics::Egress::reported : *info.egress;
}

std::string_view protocol_of(const http::RequestHead& head) {
  if (head.method.empty()) return {};  // no head was read
  switch (head.version) {
    case http::Version::http10:
      return "HTTP/1.0";
    case http::Version::http2:
      return "HTTP/2.0";
    default:
      return "HTTP/1.1";
  }
}

log::AccessEntry entry_of(const ExchangeInfo& info) {
  log::AccessEntry entry;
  entry.began = info.began;
  if (info.origin != nullptr) entry.origin = info.origin->destination->label();
  entry.status = info.status;
  entry.grpc_status = info.grpc_status;
  entry.bytes_in = info.bytes_in;
  entry.bytes_out = info.bytes_out;
  entry.connection = info.connection;
  entry.reuse = info.uses_before;
  entry.upstream_protocol = info.upstream_h2 ? "HTTP/2.0" : "HTTP/1.1";
  entry.upstream_tls = info.upstream_tls;
  if (info.asked_pool) entry.waited = info.waited;
  if (info.head_received != Instant{}) entry.upstream = info.head_received - info.leased;
  if (info.opened) entry.opened = pool::name(*info.opened);
  entry.retries = info.retries;
  if (info.retried) entry.retried = name(*info.retried);
  if (info.hedge) entry.hedge = metrics::kHedges[static_cast<std::size_t>(*info.hedge)];
  entry.unrepeated = info.unrepeated;
  if (info.fault) entry.fault = info.fault->detail;
  return entry;
}
}  // namespace

void Exchange::record() {
  const Instant now = context_.loop.now();
  const metrics::OriginSlot slot = info_.origin != nullptr ? info_.origin->slot : metrics::kNoOrigin;
  context_.stats.count_request(slot, counted(info_, request_.method, now));
  if (info_.egress) context_.stats.count(decision_of(info_));
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
