// Exchange, forwarding: sends the request to the origin on the leased connection.
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/client_field.h"
#include "proxy/http/error_reply.h"
#include "proxy/net/io_limits.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/upstream_streams.h"

namespace carpool::proxy {

namespace {
// Sets the field of request.client_field. `text` holds its value.
void set_client_field(http::ForwardRules& rules, config::ClientField field, const ClientStream& client,
                      http::ClientFieldText& text) {
  switch (field) {
    case config::ClientField::off:
      return;
    case config::ClientField::x_forwarded_for:
      rules.client_name = "x-forwarded-for";
      rules.client_value = http::x_forwarded_for(client.peer(), text);
      return;
    case config::ClientField::forwarded:
      rules.client_name = "forwarded";
      rules.client_value = http::forwarded(client.peer(), client.secured(), text);
      return;
  }
}
}  // namespace

AttemptState Exchange::begin_attempt(pool::Lease lease, LeasedFrom from) {
  CARPOOL_ASSERT(!attempt_);
  attempt_.emplace(std::move(lease), context_.loop.now());
  attempt_->authenticated = from == LeasedFrom::client;
  note_lease(context_.loop.now());
  attempt_->upstream_stream = &begin_on(*streams_, attempt_->lease);
  response_ = &streams_->response();
  enter(ExchangeEvent::lease);
  // The client itself sees the origin's bytes and the end of the connection.
  if (request_values_->tunnel.connect()) return open_tunnel();
  expect_unsolicited(*attempt_);
  if (!attempt_->upstream_stream->usable()) return on_failure(unusable_failure());
  if (info_.origin->streaming && http::is_grpc(request_)) request_values_->deadlines.allow_silence();
  if (const std::optional<Fault> fault = send_request_head(*attempt_)) {
    abandon_attempt(pool::CloseCause::policy);
    reply(*fault);
    return AttemptState::over;
  }
  // A streamed body had no connection until now.
  if (request_body_.full() || request_values_->deadlines.streams_body()) {
    request_values_->deadlines.client_was_paused(info_.leased, request_body_.received());
  }
  request_body_.start(*attempt_->upstream_stream);
  arm_deadline();
  return AttemptState::alive;
}

// Returns the failure of a connection that is not usable. A new one has ended, unless its origin sent bytes first:
// another one would begin in the same way.
StreamFailure Exchange::unusable_failure() {
  StreamFailure failure;
  failure.any_byte_sent = false;
  if (!attempt_->was_idle && attempt_->upstream_stream->sent_before_request()) {
    failure.fault = {FaultKind::malformed_response, Side::upstream, "the origin sent bytes before the request"};
    failure.any_byte_received = true;
    return failure;
  }
  failure.fault.detail = "the connection ended before it was used";
  failure.connection_ended = true;
  return failure;
}

// Records what the metrics, the access log and the span need of the request's connection.
void Exchange::note_lease(Instant leased) {
  const pool::Lease& lease = attempt_->lease;
  const auto& connection = static_cast<const Connection&>(*lease);
  info_.leased = leased;
  request_values_->deadlines.lease(leased);
  request_values_->tried = lease.index();
  info_.asked_pool = true;
  if (!lease.reused()) {
    info_.opened = lease.opened();
  } else if (info_.connection != connection.id()) {
    info_.opened.reset();  // it belongs to the connection of an earlier attempt
  }
  info_.connection = connection.id();
  info_.upstream_h2 = lease.shared();
  info_.upstream_tls = connection.security().version;
  info_.uses_before = lease.uses_before();
  if (request_values_->span) trace_lease();
}

UpstreamStream& Exchange::begin_on(UpstreamStreams& streams, const pool::Lease& lease) {
  return streams.begin(lease, {request_.method, request_values_->tunnel.upgrade(), info_.origin->protocols.bare_lf});
}

// Returns the fault if the request has credentials that the connection must not carry.
std::optional<Fault> Exchange::send_request_head(AttemptValues& attempt) {
  http::ForwardRules rules;
  if (info_.origin->request.via) rules.via_pseudonym = context_.pseudonym;
  rules.host = request_values_->host;
  rules.path = request_values_->path;
  rules.absolute = info_.origin->absolute;
  if (!rules.absolute.empty()) rules.proxy_authorization = info_.origin->parent->authorization;
  rules.upgrade = request_values_->tunnel.upgrade();
  rules.max_forwards = request_values_->max_forwards;
  if (info_.origin->credentials != nullptr || client_stream_->carries_secret()) {
    if (std::optional<Fault> fault = set_fields(rules, attempt)) return fault;
  }
  const auto sets = [&rules](std::string_view name) { return rules.set != nullptr && rules.set->has(name); };
  if (request_values_->span && !sets("traceparent")) {
    const ActiveSpan& trace = *request_values_->span;
    rules.traceparent = {trace.traceparent.data(), trace.traceparent.size()};
    rules.begins_trace = trace.begins_trace();
  }
  http::ClientFieldText client;
  set_client_field(rules, info_.origin->request.client_field, *client_stream_, client);
  if (sets(rules.client_name)) rules.client_name = {};
  attempt.upstream_stream->send_head(request_, rules);
  return std::nullopt;
}

void Exchange::measure_body(RateRule rule) {
  request_values_->deadlines.measure_body(context_.loop.now(), client_stream_->listen(), rule);
}

void Exchange::on_request_body(std::string_view bytes) {
  if (state_ == ExchangeState::idle) return;  // already answered; the client stream discards the rest
  info_.bytes_in += bytes.size();
  if (request_.expect_continue && request_body_.received() == 0) measure_body(rate_rule());
  request_body_.add(bytes, upstream_stream());
}

void Exchange::on_request_trailer(std::string_view name, std::string_view value, bool sensitive) {
  if (state_ == ExchangeState::idle || !http::trailer_allowed(name)) return;
  if (info_.origin->credentials != nullptr && info_.origin->credentials->sets(name)) return;
  request_body_.add_trailer(name, value, sensitive);
}

void Exchange::on_request_end() {
  if (state_ == ExchangeState::idle) return;
  request_body_.end(upstream_stream());
}

void Exchange::pump() {
  if (request_body_.over_limit()) return fail({FaultKind::body_too_large, Side::client, "the body exceeds max_body"});
  if (state_ == ExchangeState::collecting && borrow_when_body_may_be_sent() != AttemptState::alive) return;
  if (!attempt_) return arm_deadline();
  // The end of a body with a length may add no byte (an HTTP/2 frame of its own), but the response is awaited from now.
  const bool ends = state_ == ExchangeState::forwarding && request_body_.ended();
  if (!attempt_->upstream_stream->flush() && !ends) return;
  request_values_->deadlines.sent(context_.loop.now());
  arm_deadline();
}

bool Exchange::wants_input() const {
  switch (state_) {
    case ExchangeState::idle:
      return false;
    case ExchangeState::collecting:
    case ExchangeState::authorizing:
    case ExchangeState::borrowing:
      return !request_body_.full();
    case ExchangeState::forwarding:
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      return attempt_->upstream_stream->backlog() < kHighWatermark;
  }
  return false;
}

void Exchange::on_client_writable() {
  if (attempt_) static_cast<void>(attempt_->upstream_stream->resume_reading());
}

// Called when the upstream write queue drained or its connection failed.
AttemptState Exchange::on_writable() {
  if (state_ == ExchangeState::tunnel && tunnel_over()) {
    end_tunnel();
    return AttemptState::over;
  }
  request_values_->deadlines.origin_accepted(context_.loop.now(), request_body_.received());
  arm_deadline();
  if (attempt_->upstream_stream->backlog() < kHighWatermark) client_stream_->resume();
  return AttemptState::alive;
}

}  // namespace carpool::proxy
