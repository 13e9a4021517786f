#include "proxy/exchange/hedged_attempt.h"

#include <utility>
#include <variant>

#include "base/assert.h"
#include "pool/destination/destination.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/upstream_streams.h"

namespace carpool::proxy {

HedgedAttempt::HedgedAttempt(exec::Loop& loop, CrossLoopStreams& remote, HedgeOwner& owner)
    : loop_(loop),
      owner_(owner),
      streams_(std::make_unique<UpstreamStreams>(remote, static_cast<UpstreamStreamHandler&>(*this))) {}

HedgedAttempt::~HedgedAttempt() = default;

http::ResponseHead& HedgedAttempt::response() {
  return streams_->response();
}

void HedgedAttempt::release_buffers() {
  streams_->release_buffers();
}

// ---- the exchange's calls ----

void HedgedAttempt::start(OriginRuntime& origin, const pool::BorrowRequest& want) {
  CARPOOL_ASSERT(idle());
  origin_ = &origin;
  if (origin.is_replaced()) return owner_.on_hedge_failed();  // as on_lease()
  auto result = origin.destination->borrow(*this, want, loop_.now());
  if (auto* lease = std::get_if<pool::Lease>(&result)) return send(std::move(*lease));
  if (std::holds_alternative<Fault>(result)) return owner_.on_hedge_failed();
  state_ = State::waiting;
}

void HedgedAttempt::cancel() {
  CARPOOL_ASSERT(pending());
  const bool has_lease = std::exchange(state_, State::idle) == State::sent;
  has_lease ? abandon_attempt(pool::CloseCause::error) : origin_->destination->cancel(*this, loop_.now());
}

AttemptValues HedgedAttempt::take_over() {
  CARPOOL_ASSERT(sent());
  state_ = State::taken_over;
  AttemptValues attempt = std::move(*attempt_);
  attempt_.reset();
  return attempt;
}

void HedgedAttempt::end() {
  CARPOOL_ASSERT(taken_over());
  state_ = State::idle;
}

// ---- from the pool to the request's end ----

void HedgedAttempt::on_lease(pool::Lease lease) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == State::waiting);
  state_ = State::idle;
  if (!origin_->is_replaced()) return send(std::move(lease));
  // A reload changed how the origin is verified while the attempt waited.
  lease.return_unused(loop_.now());
  owner_.on_hedge_failed();
}

void HedgedAttempt::on_refused(Fault /*fault*/) {
  exec::assume_on_loop();
  CARPOOL_ASSERT(state_ == State::waiting);
  state_ = State::idle;
  owner_.on_hedge_failed();
}

void HedgedAttempt::send(pool::Lease lease) {
  attempt_.emplace(std::move(lease), loop_.now());
  attempt_->hedged = true;
  leased_ = loop_.now();
  state_ = State::sent;
  if (!owner_.send_hedged(*attempt_, *streams_)) static_cast<void>(fail(pool::CloseCause::peer_closed));
}

void HedgedAttempt::abandon_attempt(pool::CloseCause cause) {
  attempt_->abandon(cause, loop_.now());
  attempt_.reset();
}

AttemptState HedgedAttempt::fail(pool::CloseCause cause) {
  state_ = State::idle;
  abandon_attempt(cause);
  owner_.on_hedge_failed();
  return AttemptState::over;
}

// ---- UpstreamStreamHandler: until the attempt is taken over, only a head in order keeps it alive ----

AttemptState HedgedAttempt::on_response_head() {
  if (taken_over()) return owner_.on_response_head();
  const http::ResponseHead& head = streams_->response();
  if (head.status < 200) {
    // The client gets no 1xx of an attempt that may lose. 101 was not asked for.
    const bool ordered = head.status != 101 && attempt_->response_order.informational(false);
    return ordered && !owner_.crosses_hedge(*attempt_, head) ? AttemptState::alive : fail(pool::CloseCause::error);
  }
  return owner_.on_hedge_head(*attempt_, head) ? owner_.on_response_head() : fail(pool::CloseCause::error);
}

// No part of a message precedes its head: the order is violated, and the next call that may end the attempt ends it.
void HedgedAttempt::on_body(std::string_view bytes) {
  if (taken_over()) return owner_.on_body(bytes);
  static_cast<void>(attempt_->response_order.data(bytes.size()));
}

void HedgedAttempt::on_trailer(std::string_view name, std::string_view value, bool sensitive) {
  if (taken_over()) owner_.on_trailer(name, value, sensitive);
}

AttemptState HedgedAttempt::on_read_complete() {
  if (taken_over()) return owner_.on_read_complete();
  return attempt_->response_order.violated() ? fail(pool::CloseCause::error) : AttemptState::alive;
}

AttemptState HedgedAttempt::on_response_end() {
  return taken_over() ? owner_.on_response_end() : fail(pool::CloseCause::error);
}

AttemptState HedgedAttempt::on_failure(StreamFailure failure) {
  if (taken_over()) return owner_.on_failure(std::move(failure));
  attempt_->note_failure(failure, loop_.now());
  return fail(failure.connection_ended && attempt_->was_idle ? pool::CloseCause::peer_closed : pool::CloseCause::error);
}

AttemptState HedgedAttempt::on_writable() {
  return taken_over() ? owner_.on_writable() : AttemptState::alive;
}

// A tunnel is never hedged.
AttemptState HedgedAttempt::on_switched(std::string_view rest) {
  return taken_over() ? owner_.on_switched(rest) : fail(pool::CloseCause::error);
}

AttemptState HedgedAttempt::on_tunnel_eof() {
  return taken_over() ? owner_.on_tunnel_eof() : fail(pool::CloseCause::error);
}

}  // namespace carpool::proxy
