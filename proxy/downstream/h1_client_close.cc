// H1Client, closing: graceful close, timeouts, and the reset of a truncated close-delimited response. Also the private
// connection that a client holds until it closes.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "exec/read_buffer.h"
#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/net/plain_transport.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/private_connection.h"

namespace carpool::proxy {

namespace {
// Time for a request that crosses the close, because the client's last response did not announce it.
constexpr Duration kLastRequestTime = std::chrono::seconds(1);
// Time for a client whose response had begun before the drain and could not announce the close. An idle client delays
// the end for at most this long, and never beyond the grace period.
constexpr Duration kUnannouncedTime = std::chrono::seconds(12);
// Limits of a lingering close. A client that still sends its request reads the response only when it has sent
// everything, or when the connection has ended; a reset before would cost it the response.
constexpr Duration kLingerSilence = std::chrono::seconds(5);
constexpr Duration kMaxLinger = std::chrono::seconds(30);
constexpr int kLastReads = 16;  // when the process ends
// Interval at which cut_off() checks whether the client's kernel has acknowledged everything; no event reports it.
constexpr Duration kAckPoll = std::chrono::milliseconds(20);
}  // namespace

// ---- ends ----

void H1Client::close_when_sent(bool truncated) {
  enter(truncated ? State::truncated : State::closing);
}

// Called when everything is sent. Sends FIN, then discards further input, so that no reset overtakes the response.
void H1Client::end_gracefully() {
  if (state_ == State::truncated) return cut_off();
  const bool all_read = pending_ == nullptr && !transport_->maybe_readable() && request_state_ == RequestState::none;
  if (fin_ != Fin::none || all_read) return close();
  pending_.reset();
  transport_->shut_write();
  enter(State::lingering);
  progress_at_ = context_.loop.now();
  await_more_input();
}

void H1Client::await_more_input() {
  const Instant end = progress_at_ + (drain_ == Drain::ending ? net::kLingerTime : kMaxLinger);
  timer_.arm(std::min(context_.loop.now() + kLingerSilence, end));
}

// Ends a truncated response with a reset, because a FIN would look like its end. A reset destroys bytes in flight, so
// it waits until the client's kernel has acknowledged everything; a client that reads nothing for idle_timeout is reset
// anyway.
void H1Client::cut_off() {
  enter(State::resetting);
  transport_->reset_on_close();
  checked_bytes_ = UINT32_MAX;
  poll_acks();
}

void H1Client::poll_acks() {
  const Instant now = context_.loop.now();
  const std::uint32_t left = net::send_queue_size(transport_->fd());
  if (left != std::exchange(checked_bytes_, left)) progress_at_ = now;
  if (left == 0 || now >= deadline_after(progress_at_, listen_.idle_timeout)) return close();
  timer_.arm(now + kAckPoll);
}

// Returns true if more input may be waiting.
bool H1Client::discard_input() {
  const bool resets = state_ == State::truncated || state_ == State::resetting;
  if (!transport_->maybe_readable()) return false;
  const exec::ReadBuffer buffer(context_.loop);
  const net::Io last = discarded_.discard_some(*transport_, buffer.span());
  if (last == net::Io::failed || (last == net::Io::eof && !resets)) close();
  if (last != net::Io::ok) return false;
  if (!resets) await_more_input();
  return true;
}

void H1Client::lost() {
  if (over()) return;
  note_unused();
  close();
}

// Reports that the client has sent bytes.
void H1Client::note_use() {
  if (preface_ == 0 && interception() != nullptr) clients_.interceptor().on_use(*interception());
}

// Reports that the client has ended the connection.
void H1Client::note_unused() {
  if (preface_ == 0 && sends() && interception() != nullptr) {
    clients_.interceptor().on_unused(*interception());
  }
}

void H1Client::close() {
  if (over()) return;
  enter(State::closed);
  if (transport_->flooded()) context_.stats.note_tls_flood(peer());
  // Reset instead of closing cleanly, so the client cannot mistake a truncated response for a complete one.
  const bool response_incomplete = !write_queue_.empty() || (exchange_runs() && exchange_->response_incomplete());
  if (response_end_ == ResponseEnd::delimited && response_incomplete) transport_->reset_on_close();
  if (exchange_runs()) {
    exchange_->on_client_gone();
  } else if (exchange_ != nullptr) {
    drop_exchange();
  }
  out_.discard();
  private_.reset();
  timer_.disarm();
  exec::Deferred::unlink();
  context_.loop.forget(transport_->fd(), key_);
  if (!advancing_) clients_.destroy_later(*this);
}

// Called when the process ends. A client that has no byte of its response receives an error reply.
void H1Client::end() {
  if (state_ == State::open && exchange_runs() && exchange_->response_incomplete()) {
    exchange_->note_stopping();
  } else if (state_ == State::open && exchange_runs()) {
    exchange_->on_request_broken({FaultKind::draining, Side::self, "the proxy is stopping"});
    if (sends() && write_queue_.empty()) {
      transport_->shut_write();
      // A reset caused by unread bytes would destroy the response.
      for (int reads = 0; reads < kLastReads && discard_input(); ++reads) {
      }
    }
  }
  close();
}

void H1Client::start_graceful_close() {
  if (drain_ == Drain::none) drain_ = Drain::draining;
  if (exchange_runs() && exchange_->response_incomplete()) unannounced_ = true;
}

void H1Client::drain() {
  H1Client::start_graceful_close();
  drain_ = Drain::ending;
  if (state_ == State::lingering) {
    progress_at_ = context_.loop.now();
    return await_more_input();
  }
  end_soon();
}

Instant H1Client::last_request_until() const {
  return progress_at_ + (unannounced_ ? kUnannouncedTime : kLastRequestTime);
}

void H1Client::end_soon() {
  if (state_ != State::open || exchange_runs()) return;
  if (progress_at_ == Instant{}) progress_at_ = context_.loop.now();  // its first request may be on the way
  if (context_.loop.now() < last_request_until()) return arm_timer();
  static_cast<void>(end_if_idle());
}

bool H1Client::end_if_idle() {
  if (state_ == State::lingering) {
    close();
    return true;
  }
  if (state_ != State::open || exchange_runs() || in_head()) return false;
  if (finds_input()) {
    run_soon();
    return false;
  }
  enter(State::closing);
  run_soon();
  return true;
}

// Returns true if bytes have arrived that are not parsed yet, also if no event has announced them: a close would
// destroy the request. They are parsed in the next step. A part of a TLS record is no input: it may never be completed.
bool H1Client::finds_input() {
  return write_queue_.empty() && (pending_ != nullptr || read_ahead() != net::Io::would_block);
}

// ---- timeouts ----

void H1Client::arm_timer() {
  if (!sends()) return;
  const Instant now = context_.loop.now();
  if (in_head()) {
    // Begins with the first byte of the head.
    if (!head_timed_) timer_.arm(deadline_after(now, listen_.header_timeout));
    head_timed_ = true;
    return;
  }
  head_timed_ = false;
  const bool idle = state_ == State::open && !exchange_runs() && write_queue_.empty();
  const bool unread = exchange_ == nullptr && !write_queue_.empty();
  const Instant idle_until = deadline_after(unread ? progress_at_ : now, listen_.idle_timeout);
  timer_.arm(
      std::min({idle_until, half_closed_until_, drain_ == Drain::ending && idle ? last_request_until() : kNever}));
}

void H1Client::on_timer() {
  exec::assume_on_loop();
  if (state_ == State::lingering) return close();
  if (state_ == State::resetting) return poll_acks();
  // The exchange ended in this turn. advance() follows and ends the connection (with a reset after a truncated
  // response) or arms the timer again.
  if (exec::Deferred::linked()) return;
  if (exchange_runs()) return advance();  // half_close; the exchange has its own deadlines
  if (!in_head()) {                       // idle, or the client does not read its last response
    if (finds_input()) return advance();
    if (!write_queue_.empty()) transport_->reset_on_close();
    return close();
  }
  refuse({FaultKind::head_timeout, Side::client, "header_timeout passed inside a request's head"});
  advance();
}

// ---- half-close ----

// Returns true if the client sent FIN after its whole request and waits for a response of which no byte was sent, and
// no interim one since the FIN. Unread bytes of another request may precede the FIN.
bool H1Client::half_closed() const {
  return (fin_ != Fin::none || transport_->hangup_seen()) && request_state_ == RequestState::complete && !informed_ &&
         !exchange_->response_incomplete();
}

// Each response has its own period. A client that is gone resets the connection when the previous response is sent.
void H1Client::watch_half_close() {
  if (request_state_ == RequestState::body) return;  // see waits_for_early_response()
  if (!half_closed() || listen_.half_close == config::kUnlimited) {
    half_closed_until_ = kNever;
    return;
  }
  const Instant now = context_.loop.now();
  if (half_closed_until_ == kNever) half_closed_until_ = now + listen_.half_close;
  if (now >= half_closed_until_) give_up_half_closed();
}

// Called if the client sent FIN inside its request, as RFC 9112 §9.5 asks of one that gets an early response. Returns
// true while this client may wait for the rest of a response that has begun: it is not silent for half_close.
bool H1Client::waits_for_early_response() {
  if (!exchange_->response_incomplete()) return false;
  const Instant now = context_.loop.now();
  const auto written = static_cast<std::uint32_t>(write_queue_.bytes_written());
  const bool progress = written != std::exchange(checked_bytes_, written) || !write_queue_.empty();
  if (half_closed_until_ == kNever || progress) {
    half_closed_until_ = listen_.half_close == config::kUnlimited ? kNever : now + listen_.half_close;
  }
  return now < half_closed_until_;
}

void H1Client::give_up_half_closed() {
  context_.stats.count(metrics::GivenUp::half_close);
  exchange_->on_client_timed_out("listen.half_close passed");
}

// ---- connections that authenticated this client ----

H1Client::PrivateLease H1Client::borrow_private(const OriginRuntime& origin) {
  if (!private_ || private_->destination() != origin.destination) return {};
  PrivateLease own{private_->take()};
  own.gone = private_->ended_by_origin();
  private_state_ = own.lease ? PrivateState::lent : PrivateState::broken;
  private_.reset();
  return own;
}

bool H1Client::keep_private(const OriginRuntime& origin, pool::Lease& lease) {
  private_state_ = PrivateState::kept;
  private_ = std::make_unique<PrivateConnection>(context_.loop, exec::Bound::to<&H1Client::on_private_end>(*this),
                                                 *origin.destination, std::move(lease));
  return true;
}

void H1Client::on_private_end() {
  exec::assume_on_loop();
  private_state_ = PrivateState::broken;
  if (state_ == State::open) static_cast<void>(end_if_idle());
}

}  // namespace carpool::proxy
