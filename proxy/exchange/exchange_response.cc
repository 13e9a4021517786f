// The response: passes the upstream stream's parts to the client stream, and decides what follows a failed connection.
#include <utility>

#include "proxy/exchange/connection_auth.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/keep_alive.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// ---- relaying: the response travels ----

bool Exchange::wants_response() const {
  return client_stream_->backlog() < kHighWatermark;
}

// A violation of the message order ends the attempt, in the next call that may end it.
bool Exchange::in_order(bool followed) {
  if (followed && !attempt_->told.violated()) return true;
  StreamFailure failure;
  failure.fault = {FaultKind::malformed_response, Side::upstream, attempt_->told.wrong()};
  failure.any_byte_back = true;
  static_cast<void>(on_failure(std::move(failure)));
  return false;
}

bool Exchange::head_in_order() {
  http::MessageOrder& told = attempt_->told;
  if (response_.status < 200) return in_order(told.informational(false));
  const bool length = response_.framing == http::Framing::length;
  return in_order(told.head(response_.framing == http::Framing::none,
                            length ? std::optional(response_.length) : std::nullopt, false));
}

AttemptState Exchange::on_response_head() {
  if (!head_in_order()) return AttemptState::over;
  if (response_.status < 200) {
    asked_->deadlines.inform(context_.loop.now());
    // on_switched() follows 101.
    if (response_.status == 101 || client_stream_->send_informational(response_)) return AttemptState::alive;
    on_client_gone();
    return AttemptState::over;
  }
  if (response_.status == 421 && retry_misdirected()) return AttemptState::over;
  if (response_.status < 300 && !request_.protocol.empty()) return did_not_switch();
  facts_.head_back = context_.loop.now();
  facts_.status = response_.status;
  static_cast<Connection&>(*attempt_->lease).note_answer(response_.status, facts_.head_back);
  if (asked_->idempotent_retries != 0 && response_.status < 500)
    facts_.origin->retries.refund(asked_->idempotent_retries);
  if (!attempt_->lease.reused() && response_.fields.has(http::FieldName::keep_alive)) {
    const std::string_view hint = response_.fields.get(http::FieldName::keep_alive);
    facts_.origin->destination->hint_keep_alive(http::keep_alive_timeout(hint));
  }
  attempt_->authenticated =
      attempt_->authenticated ||
      (!attempt_->lease.shared() && (authenticates_connection(request_) || authenticates_connection(response_)));
  enter(ExchangeEvent::response_head);
  // The response may come before the request is complete. Whether the client will send the rest is unknown, so its
  // connection ends with the response.
  asked_->close_client =
      client_stream_->send_head(response_, !request_.keep_alive || !request_settled() || !context_.keeps_clients());
  return AttemptState::alive;
}

// Returns true if nothing of the request is outstanding: it was read whole, or a 417 answered it while its client
// waited for 100 (Continue).
bool Exchange::request_settled() {
  if (request_body_.ended()) return true;
  const bool waits = request_.expect_continue && request_body_.received() == 0 && !asked_->deadlines.informed();
  return response_.status == 417 && waits && client_stream_->await_repeat();
}

// The client of an extended CONNECT (RFC 8441) takes every 2xx for a tunnel, but only 101 of the origin opens one.
AttemptState Exchange::did_not_switch() {
  const Fault fault{FaultKind::malformed_response, Side::upstream, "the origin did not switch protocols"};
  facts_.origin->destination->note_failure(fault);
  end_lease(pool::CloseCause::error);
  reply(fault);
  return AttemptState::over;
}

// 421: the origin did not process the request on this connection. It is sent once more, on another connection
// (RFC 9110 §15.5.20).
bool Exchange::retry_misdirected() {
  if (asked_->misdirected || !request_body_.replayable() || facts_.retries + 1 >= most_attempts(retry_rules()))
    return false;
  asked_->misdirected = true;
  end_lease(pool::CloseCause::error);
  retry(RetryReason::misdirected);
  return true;
}

void Exchange::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  if (state_ != ExchangeState::tunnel && !attempt_->told.data(bytes.size())) return;
  facts_.bytes_out += bytes.size();
  client_stream_->send_body(bytes);
}

void Exchange::on_trailer(std::string_view name, std::string_view value) {
  exec::assume_on_loop();
  if (http::trailer_allowed(name)) attempt_->trailers.add(name, value);
}

AttemptState Exchange::on_read_complete() {
  if (!in_order(true) || !flush_reply()) return AttemptState::over;
  touch();
  return AttemptState::alive;
}

bool Exchange::flush_reply() {
  if (client_stream_->flush()) return true;
  on_client_gone();
  return false;
}

AttemptState Exchange::on_response_end() {
  if (!in_order(attempt_->told.end())) return AttemptState::over;
  client_stream_->send_end(attempt_->trailers);
  end_lease();  // before the response is complete: the next borrower, on any loop, finds the connection
  const bool sent = client_stream_->flush();
  AfterExchange next = AfterExchange::keep;
  if (asked_->close_client || !request_settled()) next = AfterExchange::close;
  if (!sent) next = AfterExchange::gone;
  enter(ExchangeEvent::ended);
  finish(next);
  return AttemptState::over;
}

void Exchange::end_lease() {
  pool::Lease& lease = attempt_->lease;
  const std::optional<pool::CloseCause> unclean = attempt_->upstream_stream->finish(lease);
  if (lease) give_lease_back(lease, unclean);
  end_attempt();
}

// After a whole response.
void Exchange::give_lease_back(pool::Lease& lease, std::optional<pool::CloseCause> unclean) {
  const Instant now = context_.loop.now();
  if (!unclean && !lease.shared()) unclean = static_cast<Connection&>(*lease).close_cause(now);
  if (attempt_->authenticated && !unclean) {
    if (client_stream_->keep_private(*facts_.origin, lease)) return;
    unclean = pool::CloseCause::private_;
  }
  unclean ? lease.discard(*unclean, now) : lease.release(now);
}

namespace {
bool ended_unanswered(const StreamFailure& failure, const pool::Lease& lease) {
  return failure.connection_ended && !failure.any_byte_back && lease.reused() && !lease.shared();
}
}  // namespace

// The connection failed. Until the response head was sent, another connection may serve the request.
AttemptState Exchange::on_failure(StreamFailure failure) {
  if (state_ == ExchangeState::relaying || state_ == ExchangeState::tunnel) {
    break_off(std::move(failure.fault));
    return AttemptState::over;
  }
  Attempt attempt = failure.attempt(attempt_->lease.reused());
  attempt.method = request_.method;
  attempt.has_body = !bodyless();
  attempt.body_whole = request_body_.replayable();
  attempt.idempotent_retries = asked_->idempotent_retries;
  attempt.proven_replays = asked_->proven_replays;
  if (failure.ask_h1 && !facts_.origin->speaks.h1) {
    attempt.unprocessed.reset();
    failure.fault.detail = "the origin asks for HTTP/1.1 (HTTP_1_1_REQUIRED), which upstream.protocols leaves out";
  }
  const std::optional<RetryReason> proof = retry_reason(attempt, retry_rules());
  const bool denied = proof == RetryReason::idempotent_reused && !facts_.origin->retries.withdraw();
  if (denied) context_.stats.count_retry_denied(facts_.origin->slot);
  note_bounds(failure.fault, attempt);
  if (ended_unanswered(failure, attempt_->lease)) attempt_->lease.note_unanswered(context_.loop.now());
  // An origin may close an idle connection at any time, so only the failure of a new connection counts.
  if (!attempt_->lease.reused() && !failure.unprocessed)
    static_cast<Connection&>(*attempt_->lease).note_failure(context_.loop.now());
  end_lease(failure.connection_ended && attempt_->lease.reused() ? pool::CloseCause::peer_closed
                                                                 : pool::CloseCause::error);
  asked_->need_h1 = asked_->need_h1 || failure.ask_h1;
  if (proof && !denied) {
    retry(*proof);
    return AttemptState::over;
  }
  facts_.origin->destination->note_failure(failure.fault);
  reply(failure.fault);
  return AttemptState::over;
}

RetryRules Exchange::retry_rules() const {
  return {facts_.origin->request.max_retries, facts_.origin->request.retry_idempotent};
}

void Exchange::note_bounds(const Fault& fault, const Attempt& attempt) {
  const bool informational = fault.kind == FaultKind::informational_limit;
  if (informational) context_.stats.count_bound(facts_.origin->slot, metrics::Bound::informational);
  const bool attempts = attempt.unprocessed && attempt.attempts() >= most_attempts(retry_rules());
  if (attempts) context_.stats.count_bound(facts_.origin->slot, metrics::Bound::attempts);
}

// Begins every attempt except the first.
void Exchange::retry(RetryReason proof) {
  ++(proof == RetryReason::idempotent_reused ? asked_->idempotent_retries : asked_->proven_replays);
  ++facts_.retries;
  CARPOOL_ASSERT(facts_.retries < most_attempts(retry_rules()));
  context_.stats.count_retry(facts_.origin->slot, name(proof));
  enter(ExchangeEvent::retry);
  if (borrow(true) == AttemptState::alive) go_on();
}

}  // namespace carpool::proxy
