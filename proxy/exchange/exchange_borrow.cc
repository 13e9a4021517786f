// Exchange, borrowing: collects the body of a slow client, then borrows a connection.
#include <algorithm>
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/priority_class.h"
#include "proxy/exchange/router.h"
#include "proxy/upstream/origin/egress_log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/origin/received_via.h"

namespace carpool::proxy {

namespace {
// Returns the longest idle time of a connection that may carry a request which must not be repeated: the time that the
// origin's observed closes allow, or at most a guess until a limit is known.
Duration max_idle_age(const OriginRuntime& origin) {
  constexpr Duration kGuess = std::chrono::seconds(5);
  const Duration trusted = origin.destination->trust();
  if (origin.destination->effective_limit() != Duration::max()) return trusted;
  const Duration half = origin.pool.idle_timeout / 2;  // zero: idle connections have no limit
  return std::min(trusted, half > Duration::zero() ? std::min(half, kGuess) : kGuess);
}

// Returns a tag for the requests of one client stream, which follow each other; never 0. Two clients may share a tag.
std::uint16_t caller_tag(const ClientStream* stream) {
  constexpr std::uint64_t kGoldenRatio = 0x9E37'79B9'7F4A'7C15;
  return static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(stream) * kGoldenRatio >> 48 | 1);
}
}  // namespace

// ---- collecting: the body is read before a connection is borrowed ----

// Returns `alive` if the exchange has a connection.
AttemptState Exchange::borrow_when_body_may_be_sent() {
  const Duration since = context_.loop.now() - info_.began;
  if (!request_body_.may_be_sent(since, client_stream_->listen().body_min_rate)) {
    arm_deadline();
    return AttemptState::over;
  }
  request_values_->deadlines.body_may_be_sent();
  return await_token_or_borrow();
}

AttemptState Exchange::await_token_or_borrow() {
  if (!finds_token()) return await_token();
  enter(ExchangeEvent::begin);
  return borrow(Accepts::any_connection);
}

// ---- borrowing: from the head to a connection ----

AttemptState Exchange::borrow(Accepts accepts) {
  const Instant now = context_.loop.now();
  const OriginRuntime& origin = *info_.origin;
  if (origin.is_replaced()) return borrow_from_new_destination(accepts);
  if (request_values_->retries.h1_required() && !origin.protocols.h1) {  // a reload has removed it
    reply({FaultKind::connection_terminated, Side::upstream, kH1NotListed});
    return AttemptState::over;
  }
  if (accepts == Accepts::any_connection) {
    ClientStream::PrivateLease own = client_stream_->borrow_private(origin);
    if (own.gone) return close_without_response();
    if (own.lease) return begin_attempt(std::move(own.lease), LeasedFrom::client);
  }
  if (request_values_->tunnel.connect() && origin.received_via) {
    origin.received_via->note(http::members_of_via(request_.fields, ReceivedVia::kMaxBytes), now);
  }
  auto result = origin.destination->borrow(*this, borrow_request(accepts), now);
  if (auto* lease = std::get_if<pool::Lease>(&result)) return begin_attempt(std::move(*lease), LeasedFrom::pool);
  if (auto* fault = std::get_if<Fault>(&result)) {
    if (origin.destination->reclaimed() || origin.is_replaced()) return borrow_from_new_destination(accepts);
    if (fault->kind == FaultKind::queue_full) add_retry_after(*fault);
    reply(*fault);
    return AttemptState::over;
  }
  info_.asked_pool = true;
  request_values_->deadlines.wait(now, origin.pool);
  if (request_values_->span && request_values_->span->wait == Instant{}) request_values_->span->wait = now;
  arm_deadline();
  return AttemptState::over;
}

pool::BorrowRequest Exchange::borrow_request(Accepts accepts) {
  const OriginRuntime& origin = *info_.origin;
  pool::BorrowRequest want;
  want.new_connection_only = accepts == Accepts::new_connection;
  want.tried = request_values_->tried;
  want.tunnel = request_values_->tunnel.requested();
  if (want.tunnel || request_values_->retries.h1_required()) want.kind = pool::ProtocolMask::h1_only;
  // A request with a body is not repeated, regardless of its method.
  const bool may_repeat = bodyless() && is_idempotent(request_.method, origin.request.retry_idempotent);
  if (origin.pool.reuse == config::Reuse::safe && !may_repeat) {
    want.max_idle = max_idle_age(origin);
  }
  if (!origin.pool.classes.empty()) {
    want.priority_class =
        class_of(origin.pool.classes, client_stream_->listen().class_name, request_.fields.get("priority"));
  }
  want.caller = caller_tag(client_stream_);
  return want;
}

// Called if the pool was removed, after origin_idle_timeout or to make room for another origin, or a reload changed how
// the origin is verified. Enters the origin as a new request does, but by the origin, not by the request, because the
// listener's settings may have changed.
AttemptState Exchange::borrow_from_new_destination(Accepts accepts) {
  context_.router.forget();
  const Result<OriginRuntime*> successor = context_.origins.enter(info_.origin->destination->origin());
  if (!successor) {
    reply(successor.fault());
    return AttemptState::over;
  }
  use_origin(**successor);
  if (!has_token()) return await_token();
  return borrow(accepts);
}

void Exchange::on_lease(pool::Lease lease) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  info_.waited += lease.waited();
  if (info_.origin->is_replaced()) return leave_replaced(std::move(lease));
  if (begin_attempt(std::move(lease), LeasedFrom::pool) == AttemptState::alive) continue_attempt();
}

// Called if a reload changed how the origin is verified while the request waited. The request must not use an earlier
// connection.
void Exchange::leave_replaced(pool::Lease lease) {
  if (lease) lease.return_unused(context_.loop.now());
  const Accepts accepts = info_.retries != 0 ? Accepts::new_connection : Accepts::any_connection;
  if (borrow_from_new_destination(accepts) == AttemptState::alive) continue_attempt();
}

// Called when the exchange has a connection after a wait or a retry. Sends the collected bytes and reads the client
// again.
void Exchange::continue_attempt() {
  pump();
  resume_client();
}

// Resumes a request body that was paused (no connection, or the upstream buffer was full). No socket event announces
// it.
void Exchange::resume_client() {
  if (client_stream_ != nullptr && attempt_) client_stream_->resume();
}

std::uint64_t Exchange::client() const {
  return client_stream_->fairness_key();
}

void Exchange::on_refused(Fault fault) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == ExchangeState::borrowing);
  info_.waited += request_values_->deadlines.waited(context_.loop.now());
  if (info_.origin->is_replaced()) return leave_replaced({});
  if (retry_connect(fault)) return;
  if (denied_by_egress(fault)) {
    info_.egress = metrics::Egress::denied;
    log_egress_denied(info_.origin->destination->label(), fault);
  }
  reply(fault);
}

}  // namespace carpool::proxy
