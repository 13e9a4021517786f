// H2Client, closing: GOAWAY on drain, timeouts, and protocol abuse.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "exec/read_buffer.h"
#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/error_reply.h"
#include "proxy/net/io_limits.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

namespace {
constexpr Duration kDrainNotice = std::chrono::seconds(1);  // for requests that crossed the first GOAWAY
constexpr std::uint64_t kDrainPing = 0x647261696e;
constexpr std::size_t kKeptRequests = 4;  // request objects that an idle connection keeps
// A client that sends requests in bursts has no open stream between them, so it counts as idle only after this time.
constexpr Duration kSpareTime = std::chrono::seconds(1);
}  // namespace

// RFC 9113 §6.8: the first GOAWAY refuses no stream. The final one follows when the client must have received the
// first.
void H2Client::drain() {
  if (std::exchange(draining_, true) || state_ != State::open) return;
  session_.announce_shutdown();
  session_.ping(kDrainPing);
  drain_until_ = context_.loop.now() + kDrainNotice;
  arm_timer();
  flush_soon();
}

bool H2Client::end_if_idle() {
  if (state_ != State::open || session_.streams() != 0 || running_ != 0 || draining_) return false;
  drain();
  return true;
}

void H2Client::on_ping_ack(std::uint64_t payload) {
  exec::assume_on_loop();
  if (draining_ && payload == kDrainPing) send_final_goaway();
}

void H2Client::send_final_goaway() {
  drain_until_ = kNever;
  if (std::exchange(goaway_sent_, true)) return;
  session_.goaway(http::H2Error::no_error);
  flush_soon();
}

void H2Client::close_if_done() {
  if (!counted_ && session_.abuse() != http::H2Abuse::none) {
    counted_ = true;
    context_.stats.count_abuse(http::h2_abuse_name(session_.abuse()));
  }
  if (!session_.over()) return;
  // Running requests end with a connection whose client violated the protocol.
  const std::string& violation = session_.connection_error();
  for (const auto& request : requests_) {
    if (request->outlives_stream()) continue;
    violation.empty() ? request->abandon() : request->break_off(violation);
  }
  if (write_queue_.empty()) linger();
}

// Called when everything is sent. Sends FIN, then discards further input, so that no reset overtakes the GOAWAY.
void H2Client::linger() {
  transport_->shut_write();
  state_ = State::lingering;
  timer_.arm(context_.loop.now() + net::kLingerTime);
  discard_input();
}

void H2Client::discard_input() {
  if (state_ != State::lingering || !transport_->maybe_readable()) return;
  const exec::ReadBuffer buffer(context_.loop);
  if (discarded_.discard(*transport_, buffer.span()) != net::Io::would_block) close();
}

// Called when the process ends. Requests without a byte of a response receive an error reply.
void H2Client::end() {
  if (state_ == State::open) {
    turn_requests_ = UINT32_MAX;
    continue_streams();
    for (const auto& request : requests_) request->give_up({FaultKind::draining, Side::self, "the proxy is stopping"});
    if (!std::exchange(goaway_sent_, true)) session_.goaway(http::H2Error::no_error);
    std::size_t budget = SIZE_MAX;  // no turn follows
    if (write_all(budget)) transport_->shut_write();
    for (const auto& request : requests_) request->note_stopping();
  }
  close();
  for (const auto& request : requests_) request->abandon();  // the tunnels that outlive their streams
}

void H2Client::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  if (transport_->flooded()) context_.stats.note_tls_flood(peer());
  if (!counted_ && session_.abuse() != http::H2Abuse::none)
    context_.stats.count_abuse(http::h2_abuse_name(session_.abuse()));
  const bool advancing = std::exchange(advancing_, true);  // recycle() does not destroy it
  for (const auto& request : requests_) {
    if (!request->outlives_stream()) request->abandon();
  }
  advancing_ = advancing;
  timer_.disarm();
  exec::Deferred::unlink();
  running_ == 0 ? context_.loop.forget(transport_->fd(), key_) : close_socket();
  if (!advancing_) destroy_when_unused();
}

// The tunnels that outlive the connection keep this object and its descriptor. The client must not wait for them.
void H2Client::close_socket() {
  context_.loop.unwatch(transport_->fd(), key_);
  transport_->shut_write();
  ::shutdown(transport_->fd(), SHUT_RDWR);
}

// Called when it has closed, and when a tunnel that outlived it ends.
void H2Client::destroy_when_unused() {
  if (running_ == 0) clients_.destroy_later(*this);
}

// ---- timeouts ----

// A client that reads too little has no head deadline, because the rest of its head is not read either; idle_timeout
// applies.
Instant H2Client::head_deadline() const {
  const Instant began = session_.head_began();
  if (began == kNever || session_.over() || write_queue_.size() >= kHighWatermark) return kNever;
  return deadline_after(began, listen_.header_timeout);
}

void H2Client::arm_timer() {
  if (state_ != State::open) return;
  Instant deadline = std::min({drain_until_, head_deadline(), idle_deadline()});
  if (holds_spares()) deadline = std::min(deadline, progress_at_ + kSpareTime);
  timer_.arm(deadline);
}

// A running request has its own deadlines. Data that outlives its request, or its END_STREAM, may wait for a window
// that never opens; then its stream ends, or the connection if no request runs or the socket does not take what was
// framed.
Instant H2Client::idle_deadline() const {
  const bool outlived = session_.streams() + outliving_ > running_;
  if (running_ != 0 && !outlived && write_queue_.empty()) return kNever;
  return deadline_after(progress_at_, listen_.idle_timeout);
}

// Returns true if no request is open and the connection holds more memory than an idle one should.
bool H2Client::holds_spares() const {
  return session_.streams() == 0 && running_ == 0 && requests_.size() > kKeptRequests;
}

void H2Client::free_idle_streams() {
  requests_.clear();
  session_.release_memory();
}

// Ends the requests that a timeout of the connection ends, each with its reason.
void H2Client::end_requests(std::string_view rule) {
  for (const auto& request : requests_) {
    if (!request->outlives_stream()) request->time_out(rule);
  }
}

void H2Client::on_timer() {
  exec::assume_on_loop();
  const Instant now = context_.loop.now();
  if (state_ == State::lingering) {
    close();
    return;
  }
  if (holds_spares() && now >= progress_at_ + kSpareTime) free_idle_streams();
  if (now >= head_deadline()) {
    const Fault fault{FaultKind::head_timeout, Side::client, "header_timeout passed inside a request's head"};
    context_.stats.record_refused(peer(), fault, http::fault_status(fault.kind).status);
    end_requests("listen.header_timeout passed inside another request's head");
    if (!write_queue_.empty()) return close();  // no GOAWAY can be sent
    session_.terminate(http::H2Error::enhance_your_calm, http::H2Abuse::none);
  } else if (now >= drain_until_) {
    send_final_goaway();
  } else if (now >= idle_deadline() && running_ != 0 && write_queue_.empty()) {
    // The client reads, but it opens no window for responses that are complete here.
    session_.reset_detached(http::H2Error::cancel);
    note_progress();
  } else if (now >= idle_deadline()) {
    // The client is idle or does not read its responses.
    const bool unread = session_.streams() != 0 || (message_waits_ && !write_queue_.empty());
    end_requests("listen.idle_timeout passed, and the client read nothing");
    session_.terminate(unread ? http::H2Error::enhance_your_calm : http::H2Error::no_error,
                       unread ? http::H2Abuse::unread : http::H2Abuse::none);
    if (!write_queue_.empty()) return close();
  }
  advance(pacer_.allowance());
}

}  // namespace carpool::proxy
