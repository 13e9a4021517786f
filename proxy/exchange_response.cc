// The response's way: what the carrier tells is passed on; and what follows when its connection fails under it.
#include <utility>

#include "proxy/authentication.h"
#include "proxy/exchange.h"
#include "proxy/http/keep_alive.h"
#include "proxy/origins.h"
#include "proxy/worker.h"

namespace carpool::proxy {

// ---- relaying: the response travels ----

bool Exchange::may_take() const {
  return requester_->backlog() < kHighMark;
}

bool Exchange::on_response_head() {
  if (response_.status < 200) {
    asked_at_ = kNever;
    if (response_.status != 101) requester_->send_informational(response_);  // on_switched() follows
    return true;
  }
  if (response_.status == 421 && ask_elsewhere()) return false;
  if (response_.status < 300 && !request_.protocol.empty()) return did_not_switch();
  head_done_ = true;
  facts_.head_back = worker_.loop().now();
  facts_.status = response_.status;
  static_cast<Connection&>(*lease_).note_answer(response_.status, facts_.head_back);
  if (idempotent_retries_ != 0 && response_.status < 500) facts_.origin->retries.refund(idempotent_retries_);
  if (!lease_.reused() && response_.fields.has(http::FieldName::keep_alive)) {
    const std::string_view hint = response_.fields.get(http::FieldName::keep_alive);
    facts_.origin->destination->hint_keep_alive(http::keep_alive_timeout(hint));
  }
  private_ =
      private_ || (!lease_.shared() && (authenticates_connection(request_) || authenticates_connection(response_)));
  enter(ExchangeEvent::response_head);
  // An answer before the request's end: whether the client will send the rest is unknown, so its connection ends with
  // it.
  close_client_ =
      requester_->send_head(response_, !request_.keep_alive || !upload_.ended() || !worker_.keeps_clients());
  return true;
}

// An extended CONNECT (RFC 8441) takes every 2xx for its tunnel; an origin that answers so, but not by 101, opened
// none.
bool Exchange::did_not_switch() {
  const Fault fault{FaultKind::malformed_response, Side::upstream, "the origin did not switch protocols"};
  facts_.origin->destination->note_failure(fault);
  give_back(pool::Closed::error);
  reply(fault);
  return false;
}

// 421: the origin did nothing, but on this connection. Once it is asked on another (RFC 9110 §15.5.20).
bool Exchange::ask_elsewhere() {
  if (misdirected_ || !upload_.whole()) return false;
  misdirected_ = true;
  give_back(pool::Closed::error);
  retry(Proof::misdirected);
  return true;
}

void Exchange::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  facts_.bytes_out += bytes.size();
  requester_->send_body(bytes);
}

void Exchange::on_trailer(std::string_view name, std::string_view value) {
  exec::assume_on_loop();
  if (http::trailer_allowed(name)) trailers_.add(name, value);
}

bool Exchange::on_response_piece() {
  if (!flush_reply()) return false;
  touch();
  return true;
}

bool Exchange::flush_reply() {
  if (requester_->flush()) return true;
  on_client_gone();
  return false;
}

void Exchange::on_response_end() {
  requester_->send_end(trailers_);
  end_lease();  // before the client knows: whoever asks next, on any loop, finds the connection
  const bool sent = requester_->flush();
  ClientNext next = ClientNext::keep;
  if (close_client_ || !upload_.ended()) next = ClientNext::close;
  if (!sent) next = ClientNext::gone;
  enter(ExchangeEvent::ended);
  rest(next);
}

void Exchange::end_lease() {
  std::optional<pool::Closed> unclean = std::exchange(carrier_, nullptr)->finish(lease_);
  if (!lease_) return;
  const Instant now = worker_.loop().now();
  if (!unclean && !lease_.shared()) unclean = static_cast<Connection&>(*lease_).outdated(now);
  if (private_ && !unclean) {
    if (requester_->keep_private(*facts_.origin, lease_)) return;
    unclean = pool::Closed::private_;
  }
  if (unclean) return lease_.discard(*unclean, now);
  lease_.release(now);
}

// The connection failed under the exchange. Before the response's head another one may do.
void Exchange::on_broken(Breakage breakage) {
  if (state_ == ExchangeState::relaying || state_ == ExchangeState::tunnel) return break_off(std::move(breakage.fault));
  Attempt attempt = breakage.attempt(lease_.reused());
  attempt.method = request_.method;
  attempt.has_body = !bodyless();
  attempt.body_whole = upload_.whole();
  attempt.idempotent_retries = idempotent_retries_;
  attempt.proven_replays = proven_replays_;
  const RetryRules rules{facts_.origin->request.max_retries, facts_.origin->request.retry_idempotent};
  const std::optional<Proof> proof = may_retry(attempt, rules);
  const bool denied = proof == Proof::idempotent_reused && !facts_.origin->retries.spend();
  if (denied) worker_.recorder().count_retry_denied(*facts_.origin);
  // A connection that rested may be closed by its origin at any time; one that is new should work.
  if (!lease_.reused() && !breakage.unprocessed) static_cast<Connection&>(*lease_).note_failure(worker_.loop().now());
  give_back(breakage.connection_ended && lease_.reused() ? pool::Closed::peer_closed : pool::Closed::error);
  need_h1_ = need_h1_ || breakage.ask_h1;
  if (proof && !denied) return retry(*proof);
  facts_.origin->destination->note_failure(breakage.fault);
  reply(breakage.fault);
}

void Exchange::retry(Proof proof) {
  ++(proof == Proof::idempotent_reused ? idempotent_retries_ : proven_replays_);
  ++facts_.retries;
  worker_.count_retry(*facts_.origin, proof);
  private_ = false;
  enter(ExchangeEvent::retry);
  borrow(true);
  if (lease_) pump();
  resume_client();
}

}  // namespace carpool::proxy
