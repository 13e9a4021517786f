// How an exchange ends, and when it is made to: every way out gives everything back first and tells the client last.
#include <algorithm>
#include <utility>

#include "proxy/exchange.h"
#include "proxy/origins.h"
#include "proxy/worker.h"

namespace carpool::proxy {

// ---- ends ----

void Exchange::on_request_broken(Fault fault) {
  switch (state_) {
    case ExchangeState::resting:
      return;
    case ExchangeState::borrowing:
      leave_line();
      return reply(fault);
    case ExchangeState::forwarding:
      give_back(pool::Closed::error);
      return reply(fault);
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      return break_off(std::move(fault));
  }
}

void Exchange::reply(const Fault& fault) {
  const bool whole = requester_->request_complete() || bodyless();
  // Behind a CONNECT that was refused there may be bytes meant for its tunnel: they are nobody's request.
  const bool keep = request_.keep_alive && whole && !connect_ && worker_.keeps_clients() && fault.side != Side::client;
  facts_.status = requester_->send_fault(fault, keep);
  facts_.fault = fault;
  const bool sent = requester_->flush();
  enter(ExchangeEvent::answered);
  rest(!sent ? ClientNext::gone : keep ? ClientNext::keep : ClientNext::close);
}

// Bytes of the response went out: it must not look complete.
void Exchange::break_off(Fault fault) {
  if (fault.side == Side::upstream) facts_.origin->destination->note_failure(fault);
  facts_.fault = std::move(fault);
  static_cast<void>(requester_->flush());  // what came of it
  give_back(state_ == ExchangeState::tunnel ? pool::Closed::tunnel_ended : pool::Closed::error);
  enter(ExchangeEvent::broken);
  rest(ClientNext::cut);
}

void Exchange::on_client_gone() {
  if (state_ == ExchangeState::borrowing) leave_line();
  if (lease_) give_back(state_ == ExchangeState::tunnel ? pool::Closed::tunnel_ended : pool::Closed::error);
  if (facts_.status == 0) facts_.status = 499;  // nginx's word for a client that did not wait
  if (!facts_.fault) facts_.fault = Fault{FaultKind::client_gone, Side::client, "the client closed its connection"};
  requester_->drop();
  enter(ExchangeEvent::client_gone);
  rest(ClientNext::gone);
}

void Exchange::leave_line() {
  const Instant now = worker_.loop().now();
  facts_.waited += now - waiting_since_;
  facts_.origin->destination->cancel(*this, now);
}

void Exchange::give_back(pool::Closed cause) {
  const std::optional<pool::Closed> unclean = std::exchange(carrier_, nullptr)->abandon(cause, lease_);
  if (!lease_) return;
  const Instant now = worker_.loop().now();
  if (unclean) return lease_.discard(*unclean, now);
  lease_.release(now);
}

// Everything is given back; the client is told last, and nothing of this exchange is touched afterwards.
void Exchange::rest(ClientNext next) {
  CARPOOL_ASSERT(!lease_);
  close_leak();
  timer_.disarm();
  if (begun()) worker_.record(*this, *requester_);
  upload_.finish();
  trailers_.clear();
  over_limit_ = false;
  Requester& requester = *std::exchange(requester_, nullptr);
  worker_.recycle(*this);
  requester.on_exchange_end(next);
}

void Exchange::tidy() {
  request_.clear();
  request_.shrink();
  response_.clear();
  response_.shrink();
}

void Exchange::enter(ExchangeEvent event) {
  const std::size_t row = find_row(state_, event);
  CARPOOL_ASSERT(row != kNoRow);
  state_ = kExchangeTable[row].to;
}

// ---- deadlines ----

void Exchange::touch() {
  if (state_ == ExchangeState::resting) return;
  const Instant now = worker_.loop().now();
  const config::Request& limits = facts_.origin->request;
  Instant deadline = kNever;
  switch (state_) {
    case ExchangeState::resting:
      return;
    case ExchangeState::borrowing:
      deadline = wait_deadline_;
      break;
    case ExchangeState::forwarding:
      deadline = forwarding_deadline(now);
      break;
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      deadline = deadline_after(now, limits.idle_timeout);
      break;
  }
  timer_.arm(std::min(deadline, total_deadline_));
}

// Bytes of a head do not put its deadline off: an origin that sends one now and then would never be given up.
Instant Exchange::forwarding_deadline(Instant now) {
  const config::Request& limits = facts_.origin->request;
  if (!upload_.ended()) return deadline_after(now, limits.idle_timeout);
  if (carrier_->backlog() != 0) return deadline_after(now, limits.response_header_timeout);
  if (asked_at_ == kNever) asked_at_ = now;
  return deadline_after(asked_at_, limits.response_header_timeout);
}

void Exchange::on_deadline() {
  exec::assume_on_loop();
  const Instant now = worker_.loop().now();
  if (state_ == ExchangeState::borrowing && now < total_deadline_ && worker_.dialing(*facts_.origin) &&
      now < waiting_since_ + facts_.origin->pool.connect_timeout) {
    // A dial is under way for this origin: its own deadline answers, and says what went wrong.
    wait_deadline_ = waiting_since_ + facts_.origin->pool.connect_timeout + std::chrono::milliseconds(100);
    return touch();
  }
  Fault fault = deadline_fault(now >= total_deadline_);
  if (state_ == ExchangeState::borrowing) leave_line();
  if (lease_ && fault.side == Side::upstream) {
    facts_.origin->destination->note_failure(fault);
    static_cast<Connection&>(*lease_).note_failure(now);
  }
  if (state_ == ExchangeState::relaying || state_ == ExchangeState::tunnel) return break_off(std::move(fault));
  if (lease_) give_back(pool::Closed::error);  // never replayed after a timeout
  reply(fault);
}

Fault Exchange::deadline_fault(bool total) const {
  if (total) return {FaultKind::request_timeout, Side::self, "request.timeout passed while " + std::string(phase())};
  switch (state_) {
    case ExchangeState::borrowing:
      return {FaultKind::wait_timeout, Side::self, "wait timed out"};
    case ExchangeState::forwarding:
      if (!upload_.ended() && carrier_->backlog() == 0) {
        return {FaultKind::head_timeout, Side::client, "request.idle_timeout passed while reading the request body"};
      }
      if (!upload_.ended()) {
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
    case ExchangeState::resting:
      return "resting";
    case ExchangeState::borrowing: {
      const std::string_view dial = worker_.dial_phase(*facts_.origin);
      if (!dial.empty()) return dial;
      return worker_.dialing(*facts_.origin) ? "connecting" : "waiting for a connection";
    }
    case ExchangeState::forwarding:
      return upload_.ended() ? "waiting for the response head" : "sending the request body";
    case ExchangeState::relaying:
      return "receiving the response body";
    case ExchangeState::tunnel:
      return "in a tunnel";
  }
  return "";
}

}  // namespace carpool::proxy
