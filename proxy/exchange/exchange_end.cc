// Exchange, termination: replies, resets, client disconnects and timeouts. Each path releases the lease and the timers
// before it notifies the client stream, because that call may destroy its owner.
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/error_reply.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// ---- ends ----

// Ends the request, with a reply if no part of the response was sent.
void Exchange::fail(Fault fault) {
  switch (state_) {
    case ExchangeState::idle:
      return;
    case ExchangeState::collecting:
    case ExchangeState::authorizing:
      return reply(fault);
    case ExchangeState::borrowing:
      leave_queue();
      return reply(fault);
    case ExchangeState::forwarding:
      if (fault.side == Side::upstream) info_.origin->destination->note_failure(fault);
      abandon_attempt(pool::CloseCause::error);
      return reply(fault);
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      return abort_response(std::move(fault));
  }
}

void Exchange::reply(const Fault& fault) {
  const bool whole = client_stream_->request_complete() || bodyless();
  // Bytes that follow a refused CONNECT may be meant for its tunnel, so they are not parsed as a request.
  const bool keep = request_.keep_alive && whole && !request_values_->tunnel.connect() && context_.keeps_clients() &&
                    fault.side != Side::client;
  info_.status = client_stream_->send_fault(fault, keep);
  if (http::is_grpc(request_)) info_.grpc_status = http::grpc_code(fault);
  info_.fault = fault;
  const bool sent = client_stream_->flush();
  enter(ExchangeEvent::answered);
  finish(!sent ? AfterExchange::gone : keep ? AfterExchange::keep : AfterExchange::close);
}

// Called if the connection that authenticated this client ended before any byte of a response. Ends the client's
// connection in the same way, as it would happen without a proxy: the client decides whether it repeats the request,
// and authenticates again.
AttemptState Exchange::close_without_response() {
  constexpr std::uint16_t kUnanswered = 444;  // nginx's status for a connection that it closes without a response
  info_.status = kUnanswered;
  info_.fault =
      Fault{FaultKind::connection_terminated, Side::upstream, "the connection that authenticated the client ended"};
  enter(ExchangeEvent::answered);
  finish(AfterExchange::close);
  return AttemptState::over;
}

// Ends a response of which a part was sent, so that it does not look complete.
void Exchange::abort_response(Fault fault) {
  if (fault.side == Side::upstream) info_.origin->destination->note_failure(fault);
  const bool malformed_end = fault.kind == FaultKind::malformed_response;
  info_.fault = std::move(fault);
  static_cast<void>(client_stream_->flush());  // the part that was received
  abandon_attempt(state_ == ExchangeState::tunnel ? pool::CloseCause::tunnel_ended : pool::CloseCause::error);
  enter(ExchangeEvent::broken);
  finish(malformed_end ? AfterExchange::malformed_end : AfterExchange::cut);
}

void Exchange::on_client_gone() {
  if (state_ == ExchangeState::borrowing) leave_queue();
  if (info_.status == 0) info_.status = 499;  // nginx's status for a client that closed its connection
  if (!info_.fault) info_.fault = Fault{FaultKind::client_gone, Side::client, "the client closed its connection"};
  if (attempt_)
    abandon_attempt(state_ == ExchangeState::tunnel ? pool::CloseCause::tunnel_ended : pool::CloseCause::error);
  enter(ExchangeEvent::client_gone);
  finish(AfterExchange::gone);
}

void Exchange::on_client_timed_out(std::string_view rule) {
  info_.fault = Fault{FaultKind::client_gone, Side::client, std::string(rule).append(" while ").append(phase())};
  on_client_gone();
}

void Exchange::note_stopping() {
  if (!info_.fault) info_.fault = Fault{FaultKind::draining, Side::self, "the proxy is stopping"};
}

void Exchange::leave_queue() {
  const Instant now = context_.loop.now();
  info_.waited += request_values_->deadlines.waited(now);
  info_.origin->destination->cancel(*this, now);
}

void Exchange::abandon_attempt(pool::CloseCause cause) {
  attempt_->abandon(cause, context_.loop.now());
  end_attempt();
}

// Must be called when the lease and the upstream stream were given back.
void Exchange::end_attempt() {
  CARPOOL_ASSERT(!attempt_->lease);
  close_leak();
  if (attempt_->hedged) end_hedge();
  if (!attempt_->trailers.empty()) trailers_buffer_ = std::move(attempt_->trailers);
  attempt_.reset();
}

// Must be called when everything was given back. Notifies the client stream last; this exchange is not accessed
// afterwards.
void Exchange::finish(AfterExchange next) {
  CARPOOL_ASSERT(!attempt_);
  cancel_hedge();
  timer_.disarm();
  unlink();  // the exchange may be in the list of those that wait for a token
  if (begun()) record();
  request_body_.finish();
  host_buffer_ = std::move(request_values_->host);
  request_values_.reset();
  ClientStream& client_stream = *std::exchange(client_stream_, nullptr);
  client_stream.on_exchange_end(next);
}

void Exchange::enter(ExchangeEvent event) {
  const std::size_t row = row_of(state_, event);
  CARPOOL_ASSERT(row != kNoRow);
  state_ = kExchangeTable[row].to;
}

}  // namespace carpool::proxy
