// Termination: replies, resets, client disconnects and timeouts. Each path releases the lease and the timers before it
// notifies the client stream, because that call may destroy its owner.
#include <algorithm>
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// ---- ends ----

void Exchange::on_request_broken(Fault fault) {
  switch (state_) {
    case ExchangeState::idle:
      return;
    case ExchangeState::collecting:
      return reply(fault);
    case ExchangeState::borrowing:
      leave_line();
      return reply(fault);
    case ExchangeState::forwarding:
      end_lease(pool::CloseCause::error);
      return reply(fault);
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      return break_off(std::move(fault));
  }
}

void Exchange::reply(const Fault& fault) {
  const bool whole = client_stream_->request_complete() || bodyless();
  // Bytes that follow a refused CONNECT may be meant for its tunnel, so they are not parsed as a request.
  const bool keep = request_.keep_alive && whole && !asked_->tunnel.connect() && context_.keeps_clients() &&
                    fault.side != Side::client;
  facts_.status = client_stream_->send_fault(fault, keep);
  facts_.fault = fault;
  const bool sent = client_stream_->flush();
  enter(ExchangeEvent::answered);
  finish(!sent ? AfterExchange::gone : keep ? AfterExchange::keep : AfterExchange::close);
}

// A part of the response was sent: it must not look complete.
void Exchange::break_off(Fault fault) {
  if (fault.side == Side::upstream) facts_.origin->destination->note_failure(fault);
  const bool spoilt = fault.kind == FaultKind::malformed_response;
  facts_.fault = std::move(fault);
  static_cast<void>(client_stream_->flush());  // the part that was received
  end_lease(state_ == ExchangeState::tunnel ? pool::CloseCause::tunnel_ended : pool::CloseCause::error);
  enter(ExchangeEvent::broken);
  finish(spoilt ? AfterExchange::spoilt : AfterExchange::cut);
}

void Exchange::on_client_gone() {
  if (state_ == ExchangeState::borrowing) leave_line();
  if (attempt_) end_lease(state_ == ExchangeState::tunnel ? pool::CloseCause::tunnel_ended : pool::CloseCause::error);
  if (facts_.status == 0) facts_.status = 499;  // nginx's status for a client that closed its connection
  if (!facts_.fault) facts_.fault = Fault{FaultKind::client_gone, Side::client, "the client closed its connection"};
  enter(ExchangeEvent::client_gone);
  finish(AfterExchange::gone);
}

void Exchange::on_client_left(std::string_view rule) {
  facts_.fault = Fault{FaultKind::client_gone, Side::client, std::string(rule).append(" while ").append(phase())};
  on_client_gone();
}

void Exchange::leave_line() {
  const Instant now = context_.loop.now();
  facts_.waited += now - asked_->waiting_since;
  facts_.origin->destination->cancel(*this, now);
}

void Exchange::end_lease(pool::CloseCause cause) {
  pool::Lease& lease = attempt_->lease;
  const std::optional<pool::CloseCause> unclean = attempt_->upstream_stream->abandon(cause, lease);
  const Instant now = context_.loop.now();
  if (lease) unclean ? lease.discard(*unclean, now) : lease.release(now);
  end_attempt();
}

// The lease and the upstream stream are given back already.
void Exchange::end_attempt() {
  CARPOOL_ASSERT(!attempt_->lease);
  close_leak();
  trailers_buffer_ = std::move(attempt_->trailers);
  attempt_.reset();
}

// Everything is given back. The client stream is notified last; nothing of this exchange is touched afterwards.
void Exchange::finish(AfterExchange next) {
  CARPOOL_ASSERT(!attempt_);
  timer_.disarm();
  if (begun()) record();
  request_body_.finish();
  host_buffer_ = std::move(asked_->host);
  asked_.reset();
  ClientStream& client_stream = *std::exchange(client_stream_, nullptr);
  client_stream.on_exchange_end(next);
}

void Exchange::release_buffers() {
  request_.clear();
  request_.shrink();
  response_.clear();
  response_.shrink();
}

void Exchange::enter(ExchangeEvent event) {
  const std::size_t row = row_of(state_, event);
  CARPOOL_ASSERT(row != kNoRow);
  state_ = kExchangeTable[row].to;
}

// ---- deadlines ----

void Exchange::touch() {
  if (state_ == ExchangeState::idle) return;
  const Instant now = context_.loop.now();
  const config::Request& limits = facts_.origin->request;
  Instant deadline = kNever;
  switch (state_) {
    case ExchangeState::idle:
      return;
    case ExchangeState::collecting:
      deadline = std::min(deadline_after(now, limits.idle_timeout), asked_->look_at);
      break;
    case ExchangeState::borrowing:
      deadline = asked_->wait_deadline;
      break;
    case ExchangeState::forwarding:
      deadline = forwarding_deadline();
      break;
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      deadline = deadline_after(now, limits.idle_timeout);
      break;
  }
  asked_->slow_at = rate_deadline(now);
  timer_.arm(std::min({deadline, asked_->total_deadline, asked_->slow_at}));
}

// A response that has begun is bounded by the origin's deadlines. Time in which carpool does not read does not count.
Instant Exchange::rate_deadline(Instant now) {
  if (!asked_->body_rate.counts() || request_body_.ended() || response_incomplete()) return kNever;
  if (wants_input()) return asked_->body_rate.deadline(request_body_.received());
  asked_->body_rate.renew(now, request_body_.received());
  return kNever;
}

void Exchange::end_slow_body() {
  context_.stats.count_given_up(metrics::GivenUp::slow_body);
  on_request_broken({FaultKind::head_timeout, Side::client, "the request body came slower than listen.body_min_rate"});
}

// Bytes of a head do not extend its deadline: an origin that sends one byte now and then would never time out. A whole
// 1xx head does, to at most twice the limit in total.
Instant Exchange::forwarding_deadline() const {
  const config::Request& limits = facts_.origin->request;
  const Duration limit = request_body_.ended() ? limits.response_header_timeout : limits.idle_timeout;
  const Instant usual = deadline_after(std::max(attempt_->moved_at, asked_->informed_at), limit);
  return std::min(usual, deadline_after(deadline_after(attempt_->moved_at, limit), limit));
}

void Exchange::on_deadline() {
  exec::assume_on_loop();
  const Instant now = context_.loop.now();
  if (now < asked_->total_deadline && now >= asked_->look_at) return look_at_body();
  if (now < asked_->total_deadline && now >= asked_->slow_at) return end_slow_body();
  if (state_ == ExchangeState::borrowing && now < asked_->total_deadline && facts_.origin->dialing() &&
      now < asked_->waiting_since + facts_.origin->pool.connect_timeout) {
    // A dial to this origin is in progress: its own deadline reports the cause.
    asked_->wait_deadline =
        asked_->waiting_since + facts_.origin->pool.connect_timeout + std::chrono::milliseconds(100);
    return touch();
  }
  const bool total = now >= asked_->total_deadline;
  if (!total && response_incomplete() && client_stream_->backlog() != 0)
    return on_client_left("request.idle_timeout passed");
  Fault fault = deadline_fault(total);
  if (state_ == ExchangeState::borrowing) leave_line();
  if (attempt_ && fault.side == Side::upstream) {
    facts_.origin->destination->note_failure(fault);
    static_cast<Connection&>(*attempt_->lease).note_failure(now);
  }
  if (state_ == ExchangeState::relaying || state_ == ExchangeState::tunnel) return break_off(std::move(fault));
  if (attempt_) end_lease(pool::CloseCause::error);  // never replayed after a timeout
  reply(fault);
}

Fault Exchange::deadline_fault(bool total) const {
  if (total) return {FaultKind::request_timeout, Side::self, "request.timeout passed while " + std::string(phase())};
  switch (state_) {
    case ExchangeState::collecting:
      return {FaultKind::head_timeout, Side::client, "request.idle_timeout passed while reading the request body"};
    case ExchangeState::borrowing:
      return {FaultKind::wait_timeout, Side::self, "wait timed out"};
    case ExchangeState::forwarding:
      if (!request_body_.ended() && attempt_->upstream_stream->backlog() == 0) {
        return {FaultKind::head_timeout, Side::client, "request.idle_timeout passed while reading the request body"};
      }
      if (!request_body_.ended()) {
        return {FaultKind::response_timeout, Side::upstream,
                "request.idle_timeout passed while sending the request body"};
      }
      return {FaultKind::response_timeout, Side::upstream,
              "request.response_header_timeout passed while waiting for the response head"};
    default:
      return {FaultKind::response_incomplete, Side::upstream, "request.idle_timeout passed mid-body"};
  }
}

std::string_view Exchange::phase() const {
  switch (state_) {
    case ExchangeState::idle:
      return "resting";
    case ExchangeState::collecting:
      return "reading the request body";
    case ExchangeState::borrowing: {
      if (facts_.origin->destination->probing()) return "waiting for the probe of an origin whose last dial failed";
      const std::string_view dial = context_.dialer.phase_of(*facts_.origin);
      if (!dial.empty()) return dial;
      return facts_.origin->dialing() ? "connecting" : "waiting for a connection";
    }
    case ExchangeState::forwarding:
      return request_body_.ended() ? "waiting for the response head" : "sending the request body";
    case ExchangeState::relaying:
      return "receiving the response body";
    case ExchangeState::tunnel:
      return "in a tunnel";
  }
  return "";
}

}  // namespace carpool::proxy
