// Exchange, failed attempts: a further attempt on a new connection, or the fault as the response.
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

Repeatable Exchange::request_repeatable() const {
  return repeatable(request_.method, !bodyless(), request_body_.replayable(), info_.origin->request.retry_idempotent);
}

RetryDecision Exchange::decide_retry(AttemptResult result) {
  const OriginRuntime& origin = *info_.origin;
  const RetryDecision decision =
      request_values_->retries.decide(result, request_repeatable(), origin.request.max_retries, origin.retries);
  if (decision.outcome == RetryOutcome::over_budget) context_.stats.count_retry_denied(origin.slot);
  return decision;
}

// Called when the connection failed. Until the response head was sent, another connection may serve the request.
AttemptState Exchange::on_failure(StreamFailure failure) {
  if (attempt_->dropped) {
    retry_after_end();
    return AttemptState::over;
  }
  if (response_incomplete()) {
    abort_response(std::move(failure.fault));
    return AttemptState::over;
  }
  if (attempt_->authenticated && failure.connection_ended && !failure.any_byte_received) {
    note_failed_attempt(failure, RetryOutcome::unsafe);
    abandon_attempt(pool::CloseCause::private_);
    return close_without_response();
  }
  if (hedge_pending()) {
    note_failed_attempt(failure, RetryOutcome::unsafe);
    if (!continue_with_hedge()) borrow_for_hedge();
    return AttemptState::over;
  }
  if (failure.fault.side == Side::client) return cannot_be_sent(failure.fault);
  const bool was_idle = attempt_->was_idle;
  const AttemptResult result =
      failure.attempt_result(was_idle, info_.origin->protocols.h1, info_.origin->retry_on.reset());
  if (failure.ask_h1 && !info_.origin->protocols.h1) failure.fault.detail = kH1NotListed;
  const RetryDecision decision = decide_retry(result);
  note_failed_attempt(failure, decision.outcome);
  if (decision.outcome != RetryOutcome::retry) note_unrepeated(decision.outcome, result, failure.fault);
  abandon_attempt(failure.connection_ended && was_idle ? pool::CloseCause::peer_closed : pool::CloseCause::error);
  if (failure.ask_h1) request_values_->retries.require_h1();
  if (decision.outcome == RetryOutcome::retry) {
    retry(decision.reason);
    return AttemptState::over;
  }
  info_.origin->destination->note_failure(failure.fault);
  reply(failure.fault);
  return AttemptState::over;
}

// The origin does not accept the request itself, so no other attempt follows, and neither the connection nor the origin
// has failed.
AttemptState Exchange::cannot_be_sent(const Fault& fault) {
  abandon_attempt(pool::CloseCause::error);
  reply(fault);
  return AttemptState::over;
}

// Records for the access log and the reply why the request is not sent again.
void Exchange::note_unrepeated(RetryOutcome outcome, AttemptResult result, Fault& fault) {
  info_.unrepeated = outcome == RetryOutcome::over_budget ? "request.retry_budget is spent"
                     : outcome == RetryOutcome::exhausted
                         ? "the attempts are used up (request.max_retries)"
                         : not_repeated_reason(result, request_repeatable(), !bodyless());
  if (!info_.unrepeated.empty()) fault.detail.append("; not repeated: ").append(info_.unrepeated);
}

// Reports the failure to the metrics, the pool and the connection's address.
void Exchange::note_failed_attempt(const StreamFailure& failure, RetryOutcome outcome) {
  const metrics::OriginSlot slot = info_.origin->slot;
  const bool informational = failure.fault.kind == FaultKind::informational_limit;
  if (informational) context_.stats.count(slot, metrics::Bound::informational);
  const bool attempts = outcome == RetryOutcome::exhausted && failure.unprocessed;
  if (attempts) context_.stats.count(slot, metrics::Bound::attempts);
  attempt_->note_failure(failure, context_.loop.now());
}

// Handles a 421: the origin did not process the request on this connection. Returns true if the request is sent once
// more, on another connection (RFC 9110 §15.5.20), which has not authenticated this client.
bool Exchange::retry_misdirected() {
  if (attempt_->authenticated) return false;
  const RetryDecision decision = decide_retry(AttemptResult::misdirected);
  if (decision.outcome != RetryOutcome::retry) return false;
  abandon_attempt(pool::CloseCause::error);
  retry(decision.reason);
  return true;
}

namespace {
// Returns true for a response that is read to its end, so that its connection can serve the next request.
bool ends_soon(const http::ResponseHead& head) {
  constexpr std::uint64_t kMaxDroppedBytes = std::uint64_t{16} * 1024;
  return head.framing == http::Framing::none ||
         (head.framing == http::Framing::length && head.length <= kMaxDroppedBytes);
}
}  // namespace

// Handles a 401 to a token, or a status of request.retry_on. Returns nullopt if the client gets this response.
// Otherwise the request is sent once more, now or after the end of this response.
std::optional<AttemptState> Exchange::retry_status() {
  if (response_->status == 401) {
    if (const std::optional<AttemptState> authorized = retry_unauthorized()) return authorized;
  }
  if (!info_.origin->retry_on.status(response_->status)) return std::nullopt;
  // Another attempt would wait for the origin's pause, or use a connection that has not authenticated this client.
  if (attempt_->authenticated || info_.origin->destination->cooling(context_.loop.now())) return std::nullopt;
  const RetryDecision decision = decide_retry(AttemptResult::refused_status);
  if (decision.outcome != RetryOutcome::retry) return std::nullopt;
  const Instant now = context_.loop.now();
  static_cast<Connection&>(*attempt_->lease).note_response(response_->status, now - info_.leased, now);
  return drop_response(decision.reason);
}

// Drops the response and sends the request once more, after the end of the response if it is short. A request that is
// still being sent would outgrow the buffer from which it is repeated, and its connection is not clean.
AttemptState Exchange::drop_response(RetryReason reason) {
  attempt_->dropped = reason;
  if (ends_soon(*response_) && all_received() && !attempt_->authenticated) return AttemptState::alive;
  retry_after_end();
  return AttemptState::over;
}

// Called if the end of the dropped response is missing: it failed, is late or is long.
void Exchange::retry_after_end() {
  const RetryReason reason = *attempt_->dropped;
  abandon_attempt(pool::CloseCause::error);
  retry(reason);
}

// Called when request.per_try_timeout passed.
void Exchange::on_late_attempt(Fault fault) {
  if (attempt_->dropped) return retry_after_end();
  const Instant now = context_.loop.now();
  static_cast<Connection&>(*attempt_->lease).note_failure(now);
  const RetryDecision decision =
      attempt_->authenticated ? RetryDecision{RetryOutcome::unsafe, {}} : decide_retry(AttemptResult::late);
  if (decision.outcome == RetryOutcome::retry) {
    info_.origin->destination->note_failure(fault);
    if (may_hedge()) return hedge(decision.reason);
    abandon_attempt(pool::CloseCause::error);
    return retry(decision.reason);
  }
  note_unrepeated(decision.outcome, AttemptResult::late, fault);
  fail(std::move(fault));
}

// Called when no connection was made. Returns true if another one is requested.
bool Exchange::retry_connect(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::connect_refused:
    case FaultKind::connect_timeout:
    case FaultKind::unroutable:
    case FaultKind::dns_timeout:
      break;
    default:
      return false;
  }
  if (!info_.origin->retry_on.connect_failure()) return false;
  const RetryDecision decision = decide_retry(AttemptResult::unconnected);
  if (decision.outcome != RetryOutcome::retry) return false;
  count_retry(decision.reason);
  if (borrow(Accepts::any_connection) == AttemptState::alive) continue_attempt();
  return true;
}

void Exchange::count_retry(RetryReason reason) {
  ++info_.retries;
  info_.retried = reason;
  context_.stats.count(info_.origin->slot, reason);
}

// Begins every attempt except the first. If a stale connection may have caused the failure, the next attempt uses a new
// one.
void Exchange::retry(RetryReason reason) {
  cancel_hedge();
  count_retry(reason);
  const bool unauthorized = reason == RetryReason::unauthorized;
  if (unauthorized && !finds_token()) {
    static_cast<void>(await_token());
    return;
  }
  enter(ExchangeEvent::retry);
  const bool answered = unauthorized || reason == RetryReason::status || reason == RetryReason::per_try_timeout;
  const Accepts accepts = answered ? Accepts::any_connection : Accepts::new_connection;
  if (borrow(accepts) == AttemptState::alive) continue_attempt();
}

}  // namespace carpool::proxy
