// The second attempt of a request whose first one is late (request.hedge): which of both the exchange keeps. The
// request has no body and is idempotent (the row `late` of retry_policy.h), so both may be sent whole.
#include <utility>

#include "proxy/exchange/connection_auth.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/hedged_attempt.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/upstream_streams.h"

namespace carpool::proxy {

// A connection that authenticates its client serves no other request, so a second one would have to authenticate too.
bool Exchange::may_hedge() {
  return info_.origin->request.hedge && state_ == ExchangeState::forwarding && !request_values_->tunnel.requested() &&
         !attempt_->authenticated && !authenticates_connection(request_) && (!hedge_ || hedge_->idle());
}

void Exchange::hedge(RetryReason reason) {
  count_retry(reason);
  if (!hedge_)
    hedge_ =
        std::make_unique<HedgedAttempt>(context_.loop, context_.cross_loop_streams, static_cast<HedgeOwner&>(*this));
  request_values_->deadlines.hedge();
  pool::BorrowRequest want = borrow_request(Accepts::any_connection);
  want.client = client();
  want.caller = 0;  // it does not follow the first attempt
  hedge_->start(*info_.origin, want);
  arm_deadline();
}

// The request's own attempt cannot succeed any more. Returns true if the hedged one takes its place; it has
// request.per_try_timeout from now on.
bool Exchange::continue_with_hedge() {
  if (!hedge_ || !hedge_->sent()) return false;
  abandon_attempt(pool::CloseCause::error);
  attempt_.emplace(hedge_->take_over());
  response_ = &hedge_->response();
  note_lease(hedge_->leased());
  request_values_->deadlines.hedge_ended(context_.loop.now());
  arm_deadline();
  return true;
}

// The request's own attempt failed while the hedged one waits for a connection: the request waits itself, and is sent
// when it has one. The retry is counted already.
void Exchange::borrow_for_hedge() {
  hedge_->cancel();
  note_hedge(metrics::Hedge::failed);  // it got no connection, and the late attempt no response
  abandon_attempt(pool::CloseCause::error);
  enter(ExchangeEvent::retry);
  if (borrow(Accepts::any_connection) == AttemptState::alive) continue_attempt();
}

// The request's own attempt has the head of a final response. Returns true if the hedged attempt, which may get a
// better one, takes its place; cancels it otherwise.
bool Exchange::yields_to_hedge() {
  if (!hedge_pending()) return false;
  if (info_.origin->retry_on.status(response_->status) && continue_with_hedge()) return true;
  cancel_hedge();
  return false;
}

bool Exchange::hedge_pending() const {
  return hedge_ && hedge_->pending();
}

// The attempt that came from the hedged one has ended. It has won when its response began.
void Exchange::end_hedge() {
  const bool left = info_.fault && info_.fault->side == Side::client;
  if (state_ == ExchangeState::forwarding) note_hedge(left ? metrics::Hedge::lost : metrics::Hedge::failed);
  hedge_->end();
}

// The request ends, or is sent again.
void Exchange::cancel_hedge() {
  if (!hedge_pending()) return;
  hedge_->cancel();
  note_hedge(metrics::Hedge::lost);
}

void Exchange::note_hedge(metrics::Hedge result) {
  info_.hedge = result;
  context_.stats.count(info_.origin->slot, result);
}

// ---- HedgeOwner ----

bool Exchange::send_hedged(AttemptValues& attempt, UpstreamStreams& streams) {
  attempt.upstream_stream = &begin_on(streams, attempt.lease);
  expect_unsolicited(attempt);
  if (!attempt.upstream_stream->usable() || send_request_head(attempt)) return false;
  request_body_.start(*attempt.upstream_stream);
  static_cast<void>(attempt.upstream_stream->flush());
  return true;
}

// A response that would be followed by another attempt does not win over an attempt that is in progress.
bool Exchange::on_hedge_head(AttemptValues& attempt, const http::ResponseHead& head) {
  if (crosses_hedge(attempt, head)) return false;
  const bool refuses = head.status == 401 || head.status == 421 || info_.origin->retry_on.status(head.status);
  if (!refuses) return continue_with_hedge();
  const Instant now = context_.loop.now();
  record_response_in_pool(attempt.lease, head, hedge_->leased());
  static_cast<Connection&>(*attempt.lease).note_response(head.status, now - hedge_->leased(), now);
  return false;
}

// The request's own attempt continues alone. It may be hedged again when another per_try_timeout has passed.
void Exchange::on_hedge_failed() {
  note_hedge(metrics::Hedge::failed);
  request_values_->deadlines.hedge_ended(context_.loop.now());
  arm_deadline();
}

}  // namespace carpool::proxy
