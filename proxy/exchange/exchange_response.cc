// Exchange, response: passes the upstream stream's parts to the client stream.
#include <utility>

#include "base/ascii.h"
#include "base/assert.h"
#include "proxy/exchange/connection_auth.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/keep_alive.h"
#include "proxy/net/io_limits.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_queue.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// ---- relaying ----

bool Exchange::wants_response() const {
  return client_stream_->backlog() < kHighWatermark;
}

// Ends the attempt if this part, or an earlier one whose call could not end it, violated the order of messages. Returns
// false then.
bool Exchange::in_order(bool part_in_order) {
  if (part_in_order && !attempt_->response_order.violated()) return true;
  StreamFailure failure;
  failure.fault = {FaultKind::malformed_response, Side::upstream, attempt_->response_order.error()};
  failure.any_byte_received = true;
  static_cast<void>(on_failure(std::move(failure)));
  return false;
}

bool Exchange::head_in_order() {
  http::MessageOrder& order = attempt_->response_order;
  if (response_->status < 200) return in_order(order.informational(false));
  const bool length = response_->framing == http::Framing::length;
  return in_order(order.head(response_->framing == http::Framing::none,
                             length ? std::optional(response_->length) : std::nullopt, false));
}

namespace {
// Returns true for server-sent events (HTML §9.2): the media type, with or without parameters.
bool is_event_stream(const http::ResponseHead& head) {
  constexpr std::string_view kType = "text/event-stream";
  const std::string_view value = head.fields.get("content-type");
  if (!http::iequals(value.substr(0, kType.size()), kType)) return false;
  return value.size() == kType.size() || value[kType.size()] == ';' || value[kType.size()] == ' ';
}
}  // namespace

AttemptState Exchange::on_response_head() {
  if (!head_in_order()) return AttemptState::over;
  if (response_->status < 200) {
    if (std::optional<StreamFailure> crossed = unsolicited(*attempt_, *response_))
      return on_failure(std::move(*crossed));
    note_interim_head();
    // on_switched() follows 101.
    if (response_->status == 101 || client_stream_->send_informational(*response_)) return AttemptState::alive;
    on_client_gone();
    return AttemptState::over;
  }
  if (const std::optional<AttemptState> sent_again = retry_unsolicited()) return *sent_again;
  record_response_in_pool(attempt_->lease, *response_, info_.leased);
  // Precedes any retry, because the connection of a dropped response is also given back to the pool.
  const bool bound = attempt_->authenticated;
  note_authentication();
  if (yields_to_hedge()) return AttemptState::over;
  if (response_->status == 421 && retry_misdirected()) return AttemptState::over;
  if (response_->status == 407 && !info_.origin->absolute.empty()) return parent_asks_for_credentials();
  if (response_->status < 300 && request_.version == http::Version::http2 && !request_.protocol.empty())
    return did_not_switch("the origin did not switch protocols");
  if (const std::optional<AttemptState> sent_again = retry_status()) return *sent_again;
  note_final_head();
  enter(ExchangeEvent::response_head);
  // A response may arrive before the request is complete. The client may never send the rest, so its connection ends
  // with the response.
  const bool unbinds = bound && !keeps_connection();
  request_values_->close_client = client_stream_->send_head(
      *response_, !request_.keep_alive || !request_ended() || !context_.keeps_clients() || unbinds);
  return AttemptState::alive;
}

// Records what the head that the client gets says of the origin and of the connection.
void Exchange::note_final_head() {
  if (info_.origin->streaming && is_event_stream(*response_)) request_values_->deadlines.allow_silence();
  info_.head_received = context_.loop.now();
  info_.status = response_->status;
  if (attempt_->hedged) note_hedge(metrics::Hedge::won);
  static_cast<Connection&>(*attempt_->lease)
      .note_response(response_->status, info_.head_received - info_.leased, info_.head_received);
  const std::uint32_t idempotent = request_values_->retries.idempotent();
  if (idempotent != 0 && response_->status < 500) info_.origin->retries.refund(idempotent);
  if (!attempt_->lease.reused() && response_->fields.has(http::FieldName::keep_alive)) {
    const std::string_view hint = response_->fields.get(http::FieldName::keep_alive);
    info_.origin->destination->hint_keep_alive(http::keep_alive_timeout(hint));
  }
}

void Exchange::note_interim_head() {
  attempt_->informed = true;
  request_values_->deadlines.inform(context_.loop.now());
  // A client that expects 100 must send from now on, otherwise it occupies the connection without using it.
  if (response_->status == 100 && awaits_continue()) measure_body(RateRule::if_wanted);
  request_values_->continued |= response_->status == 100;
}

void Exchange::note_authentication() {
  if (attempt_->lease.shared()) return;
  attempt_->authenticated |= authenticates_connection(request_) || authenticates_connection(*response_);
}

// Returns true if the connection, which this client has authenticated, can carry another of its requests.
bool Exchange::keeps_connection() {
  auto& connection = static_cast<Connection&>(*attempt_->lease);
  return response_->keep_alive && !connection.close_cause(context_.loop.now());
}

// Called for a 101 that does not answer the request, and for a 2xx to an extended CONNECT (RFC 8441): its client
// interprets every 2xx as a tunnel, but only a 101 of the origin opens one.
AttemptState Exchange::did_not_switch(std::string_view why) {
  fail({FaultKind::malformed_response, Side::upstream, std::string(why)});
  return AttemptState::over;
}

// Replies with an error instead of the challenge, which is for this proxy: a client that followed it would send its own
// credentials to another party.
AttemptState Exchange::parent_asks_for_credentials() {
  const net::ParentProxy& parent = *info_.origin->parent;
  context_.stats.count_parent_refusal(response_->status);
  fail({FaultKind::parent_refused, Side::upstream,
        "the proxy " + parent.place.label() + " answered with 407: it " +
            (parent.authorization.empty() ? "needs" : "does not accept") + " upstream.proxy_credentials"});
  return AttemptState::over;
}

void Exchange::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  if (state_ != ExchangeState::tunnel && !attempt_->response_order.data(bytes.size())) return;
  if (attempt_->dropped) return;
  info_.bytes_out += bytes.size();
  client_stream_->send_body(bytes);
}

bool Exchange::splices_body() const {
  return client_stream_->splices_body();
}

AttemptState Exchange::splice_body(net::Transport& from, std::size_t max_bytes, net::IoResult& io) {
  const bool tunnel = state_ == ExchangeState::tunnel;
  // Only a short response is dropped.
  CARPOOL_ASSERT(tunnel || (state_ == ExchangeState::relaying && !attempt_->dropped));
  const bool accepted = client_stream_->splice_body(from, max_bytes, io);
  if (io.io == net::Io::ok && (tunnel || attempt_->response_order.data(io.bytes))) info_.bytes_out += io.bytes;
  if (accepted) return AttemptState::alive;
  on_client_gone();
  return AttemptState::over;
}

void Exchange::on_trailer(std::string_view name, std::string_view value, bool sensitive) {
  exec::assume_on_loop();
  if (!http::trailer_allowed(name, http::is_grpc(request_))) return;
  if (attempt_->trailers.empty()) {
    attempt_->trailers = std::move(trailers_buffer_);
    attempt_->trailers.clear();
  }
  attempt_->trailers.add(name, value, sensitive);
}

AttemptState Exchange::on_read_complete() {
  if (!in_order(true) || !flush_reply()) return AttemptState::over;
  arm_deadline();
  return AttemptState::alive;
}

bool Exchange::flush_reply() {
  if (client_stream_->flush()) return true;
  on_client_gone();
  return false;
}

// Records the result of a gRPC call, which is in the trailers or in a response without a body.
void Exchange::note_grpc_status() {
  const bool alone = attempt_->trailers.empty();
  if (alone && (info_.bytes_out != 0 || !http::is_grpc(request_))) return;
  const std::string_view text = (alone ? response_->fields : attempt_->trailers).get("grpc-status");
  if (const auto code = number_in<std::uint16_t>(text)) info_.grpc_status = *code;
}

AttemptState Exchange::on_response_end() {
  if (!in_order(attempt_->response_order.end())) return AttemptState::over;
  if (const std::optional<RetryReason> sent_again = attempt_->dropped) {
    complete_attempt();
    retry(*sent_again);
    return AttemptState::over;
  }
  note_grpc_status();
  client_stream_->send_end(attempt_->trailers);
  complete_attempt();  // precedes the end of the response, so that the next borrower, on any loop, finds the connection
  const bool sent = client_stream_->flush();
  AfterExchange next = AfterExchange::keep;
  if (request_values_->close_client) next = AfterExchange::close;
  if (!sent) next = AfterExchange::gone;
  enter(ExchangeEvent::ended);
  finish(next);
  return AttemptState::over;
}

void Exchange::complete_attempt() {
  pool::Lease& lease = attempt_->lease;
  const std::optional<pool::CloseCause> unclean = attempt_->upstream_stream->finish(lease);
  if (lease) give_lease_back(lease, unclean);
  end_attempt();
}

// Must be called after a complete response.
void Exchange::give_lease_back(pool::Lease& lease, std::optional<pool::CloseCause> unclean) {
  const Instant now = context_.loop.now();
  if (!lease.shared()) static_cast<Connection&>(*lease).note_returned(now);
  if (!unclean && !lease.shared()) unclean = static_cast<Connection&>(*lease).close_cause(now);
  if (attempt_->authenticated && !unclean) {
    if (client_stream_->keep_private(*info_.origin, lease)) return;
    unclean = pool::CloseCause::private_;
  }
  unclean ? lease.discard(*unclean, now) : lease.release(now);
}

}  // namespace carpool::proxy
