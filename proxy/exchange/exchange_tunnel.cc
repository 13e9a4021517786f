// Exchange, tunnel: after 101 or CONNECT, bytes in both directions until both are closed.
#include <optional>
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// Ends an attempt with a 101 inside the request. Until the request is complete, its client may not use the new
// protocol; its bytes are framed by the old one (RFC 9110 §7.8).
bool Exchange::switched_too_early() {
  if (!request_body_.expected() || request_body_.ended()) return false;
  fail({FaultKind::malformed_response, Side::upstream, "101 Switching Protocols inside the request's body"});
  return true;
}

AttemptState Exchange::on_switched(std::string_view rest) {
  if (std::optional<StreamFailure> crossed = unsolicited(*attempt_, *response_)) return on_failure(std::move(*crossed));
  if (switched_too_early()) return AttemptState::over;
  if (!http::switches_as_offered(request_.fields, response_->fields))
    return did_not_switch("101 Switching Protocols to a protocol that was not offered");
  if (const std::string_view why = client_stream_->why_not_switched(*response_); !why.empty())
    return did_not_switch(why);
  info_.status = 101;
  info_.head_received = context_.loop.now();
  enter_tunnel();
  client_stream_->send_tunnel(response_);
  client_stream_->send_body(rest);
  info_.bytes_out += rest.size();
  if (!flush_reply()) return AttemptState::over;
  client_stream_->on_tunnel();
  arm_deadline();
  return AttemptState::alive;
}

// Opens the tunnel of a CONNECT. The connection is established, and no byte of the request is sent on it.
AttemptState Exchange::open_tunnel() {
  info_.status = 200;
  enter_tunnel();
  client_stream_->send_tunnel(nullptr);
  if (!flush_reply()) return AttemptState::over;
  client_stream_->on_tunnel();
  arm_deadline();
  attempt_->upstream_stream->open_tunnel();
  return AttemptState::alive;
}

void Exchange::enter_tunnel() {
  pass_trial(attempt_->lease);
  if (info_.origin->streaming) request_values_->deadlines.allow_silence();
  attempt_->lease.become_tunnel();
  request_values_->tunnel.open();
  enter(ExchangeEvent::switched);
}

void Exchange::on_tunnel_bytes(std::string_view bytes) {
  request_values_->tunnel.on_client_bytes();
  info_.bytes_in += bytes.size();
  attempt_->upstream_stream->send_body(bytes);
}

void Exchange::on_tunnel_input_end() {
  request_values_->tunnel.on_client_fin();
  attempt_->upstream_stream->shut_write_when_sent();
  if (tunnel_over()) end_tunnel();
}

AttemptState Exchange::on_tunnel_eof() {
  request_values_->tunnel.on_origin_fin();
  client_stream_->shut_write_when_sent();
  if (!tunnel_over()) return AttemptState::alive;
  end_tunnel();
  return AttemptState::over;
}

bool Exchange::tunnel_over() {
  const UpstreamStream& origin = *attempt_->upstream_stream;
  request_values_->tunnel.on_origin_queue(!origin.write_closed(), origin.backlog());
  return request_values_->tunnel.over();
}

void Exchange::end_tunnel() {
  abandon_attempt(pool::CloseCause::tunnel_ended);
  enter(ExchangeEvent::ended);
  finish(AfterExchange::close);
}

}  // namespace carpool::proxy
