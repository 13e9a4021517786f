// Exchange, span: sampled with the head, exported with the record.
#include <array>
#include <optional>

#include "pool/destination/destination.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/trace_context.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/redact.h"
#include "proxy/telemetry/span_buffer.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
constexpr std::uint8_t kSampled = 1, kForwardedFlags = 3;  // the second flag: the trace id is random (level 2)

// Returns nothing if there is more than one traceparent (§3.2 of the specification).
std::optional<SpanParent> parent_of(const http::Fields& fields) {
  if (fields.count("traceparent") != 1) return std::nullopt;
  return parse_traceparent(fields.get("traceparent"));
}
}  // namespace

// Samples a request with a trace context if its sender sampled it. A new trace begins at random (otlp.sample).
void Exchange::begin_trace() {
  SpanBuffer& spans = *context_.spans;
  if (!client_stream_->traced()) return;
  std::optional<SpanParent> parent = parent_of(request_.fields);
  if (parent ? !parent->sampled() : !spans.begins_trace()) return;
  if (!parent) parent = SpanParent{spans.next_trace(), 0, kSampled};
  parent->flags &= kForwardedFlags;
  ActiveSpan& trace = request_values_->span.emplace();
  trace.parent = *parent;
  trace.id = spans.next_id();
  trace.traceparent = write_traceparent(parent->trace, trace.id, parent->flags);
}

void Exchange::trace_lease() {
  ActiveSpan& trace = *request_values_->span;
  const pool::Lease& lease = attempt_->lease;
  const auto& connection = static_cast<const Connection&>(*lease);
  if (lease.reused()) return;
  trace.dialed = connection.dialed();
  trace.dial = connection.opened_at() - trace.dialed;
}

namespace {
// Returns the span of an exchange, without its target.
Span span_of(const ExchangeInfo& info) {
  Span span;
  span.to_origin = info.origin != nullptr;
  span.began = info.began;
  span.send = info.leased;
  span.first_byte = info.head_received;
  span.status = info.status;
  span.bytes_in = info.bytes_in;
  span.bytes_out = info.bytes_out;
  span.asked_pool = info.asked_pool;
  span.waited = info.waited;
  if (info.opened) span.opened = pool::name(*info.opened);
  span.connection = info.connection;
  span.reuse = info.uses_before;
  span.retries = info.retries;
  if (info.retried) span.retried = name(*info.retried);
  span.not_repeated = info.unrepeated;
  return span;
}

// Sets the type of the error: the kind of the fault, or the status from 400 on, whose digits `text` holds.
void add_error(Span& span, const std::optional<Fault>& fault, std::array<char, 3>& text) {
  if (fault) {
    span.error_type = http::fault_name(fault->kind);
    span.error = fault->detail;
  } else if (span.status >= 400 && span.status < 1000) {
    text = {static_cast<char>('0' + span.status / 100), static_cast<char>('0' + span.status / 10 % 10),
            static_cast<char>('0' + span.status % 10)};
    span.error_type = {text.data(), text.size()};
  }
}
}  // namespace

void Exchange::record_span(Instant now) {
  const ActiveSpan& active = *request_values_->span;
  Span span = span_of(info_);
  span.trace = active.parent.trace;
  span.id = active.id;
  span.parent = active.parent.span;
  span.flags = active.parent.flags;
  span.ended = now;
  span.wait = active.wait;
  span.dial = active.dial;
  span.dialed = active.dialed;
  span.method = request_.method;
  const bool tunnel = request_values_->tunnel.connect();
  if (info_.origin != nullptr) {
    const pool::Origin& origin = info_.origin->destination->origin();
    span.scheme = pool::name(origin.scheme);
    span.host = origin.host;
    span.port = origin.port;
    if (!tunnel) span.target = http::redacted(request_values_->path, context_.spans->scratch());
  }
  if (info_.connection != 0 && !tunnel) span.protocol_version = info_.upstream_h2 ? "2" : "1.1";
  std::array<char, 3> status;
  add_error(span, info_.fault, status);
  context_.spans->add(span);
}

}  // namespace carpool::proxy
