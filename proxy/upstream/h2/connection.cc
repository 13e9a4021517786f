#include "proxy/upstream/h2/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/net/read_with_budget.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

namespace {
// Receive window of the session. It never blocks a stream: a client that does not read stops only its own stream.
constexpr std::uint32_t kWindow = 4 * 1024 * 1024;
constexpr std::size_t kPull = std::size_t{64} * 1024;  // bytes of frames per write
constexpr std::uint32_t kMaxDelivering = 8;            // each may hold a write batch of the loop

// After this time without a byte, a PING precedes the next request, or checks on pending ones.
constexpr Duration kPingAfter = std::chrono::seconds(5);
constexpr int kPingLooks = 4;                               // within the time that a PING has
constexpr Duration kPingTimeout = std::chrono::seconds(3);  // timeout of the acknowledgement
// The time from one PING to the next with no frame of a response between them, beside open streams. A server of gRPC
// ends a session after the fourth PING without such a frame, unless five minutes are between them
// (grpc/proposal/A8-client-side-keepalive.md); one may precede these, while no stream is open.
constexpr std::array<Duration, 3> kPingIntervals{Duration::zero(), std::chrono::seconds(10), std::chrono::minutes(6)};
// A stream that is abandoned after this time without a byte makes the connection suspect. The acknowledgement of a PING
// then has this timeout, too.
constexpr Duration kSuspectAfter = std::chrono::seconds(1);
constexpr unsigned kUserTimeoutMs = 10000;  // limit of the time that sent data stays unacknowledged

http::H2Options session_options() {
  http::H2Options options;
  options.head = H2LoopContext::response_limits();
  options.stream_window = kNarrowWindow;
  options.window = kWindow;
  options.shared_window_is_free = true;
  return options;
}
}  // namespace

H2Connection::H2Connection(H2LoopContext& host, OriginRuntime& context, std::uint64_t id, net::Dialed dialed,
                           Instant now)
    : Connection(id, std::move(dialed), now),
      host_(host),
      origin_(context),
      session_(http::H2Role::client, session_options(), *this),
      timer_(exec::Timer::bind<&H2Connection::on_timer>(host.loop(), *this)),
      max_streams_(context.pool.max_streams),
      streams_(max_streams_),
      last_read_(now) {
  const unsigned limit = kUserTimeoutMs;
  ::setsockopt(transport().fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);  // fails on Unix sockets
}

// Sends GOAWAY if the socket accepts it without blocking.
H2Connection::~H2Connection() {
  exec::assume_on_loop();
  CARPOOL_ASSERT(open_.empty() && broken_.empty());
  exec::Deferred::unlink();
  if (!works() || !write_queue_.empty()) return;
  session_.goaway(http::H2Error::no_error);
  send_pulled();
}

Result<bool> H2Connection::handshake(exec::Ready ready) {
  transport().on_readiness(ready);
  read_some();
  flush();
  if (!dead_ && !retired_) return settings_received_ && acked_;
  return Fault{
      FaultKind::connection_terminated, Side::upstream,
      "no HTTP/2 session with the origin: " + (!works() ? failure_reason_ : std::string("the origin sent GOAWAY"))};
}

void H2Connection::assign_slot(std::uint32_t index, std::uint32_t generation) {
  index_ = index;
  generation_ = generation;
  in_pool_ = true;
  schedule_flush();
}

void H2Connection::schedule_flush() {
  if (!exec::Deferred::linked()) host_.loop().defer(*this);
}

void H2Connection::run() {
  if (transport().maybe_readable()) read_some();
  flush();
  // Not within open(): this may serve waiters, and a head is being encoded there.
  if (session_.out_of_streams()) retire(pool::CloseCause::max_usage);
  report_failures();
}

// ---- receiving ----

void H2Connection::on_ready(exec::Ready ready) {
  transport().on_readiness(ready);
  read_some();
  if (!write_queue_.empty() || session_.wants_pull() || session_.over() || !broken_.empty()) schedule_flush();
}

void H2Connection::read_some() {
  std::size_t budget = kTurnBytes;
  const net::ReadOutcome outcome = net::read_with_budget(
      host_.loop(), transport(), budget, [this] { return !dead_; }, [] { return SIZE_MAX; },
      [this](std::string_view bytes) LOOP_ONLY { return receive(bytes); });
  if (outcome.end == net::ReadEnd::exhausted) return schedule_flush();
  if (outcome.end != net::ReadEnd::closed) return;
  const bool eof = outcome.io.io == net::Io::eof;
  fail(eof ? pool::CloseCause::peer_closed : pool::CloseCause::error,
       {FaultKind::connection_terminated, Side::upstream,
        eof ? end_reason("the origin closed the connection") : std::string(outcome.io.detail)});
}

// Returns false if the session has failed.
bool H2Connection::receive(std::string_view bytes) {
  const Instant now = host_.loop().now();
  last_read_ = now;
  ping_sent_at_ = {};
  suspect_ = false;
  if (std::exchange(awaiting_ping_ack_, false)) schedule_flush();
  Status received = session_.receive(bytes, now);
  flush_to_handler();
  if (received) return true;
  send_pulled();  // GOAWAY with the reason
  fail(pool::CloseCause::error, received.take_fault());
  return false;
}

// Fails the session if it ended by protocol: all streams finished after GOAWAY, or the peer reported a connection
// error.
void H2Connection::fail_if_over() {
  if (!works() || !session_.over()) return;
  if (const std::string& why = session_.connection_error(); !why.empty()) {
    fail(pool::CloseCause::error,
         {FaultKind::malformed_response, Side::upstream, "the origin violated HTTP/2: " + why});
  } else {
    fail(pool::CloseCause::error, {FaultKind::connection_terminated, Side::upstream,
                                   end_reason("the HTTP/2 session ended with this stream open")});
  }
}

// Returns the error that the origin gave in GOAWAY, or else `otherwise`.
std::string H2Connection::end_reason(std::string_view otherwise) const {
  if (goaway_error_ == http::H2Error::no_error) return std::string(otherwise);
  return std::string("the origin ended the HTTP/2 session: ").append(http::h2_error_name(goaway_error_));
}

void H2Connection::begin_delivery(H2UpstreamStream& upstream_stream) {
  pings_ = 0;
  if (upstream_stream.ListHook<H2DeliveringTag>::linked()) return;
  if (delivering_count_ == kMaxDelivering) flush_to_handler();
  delivering_.push_back(upstream_stream);
  ++delivering_count_;
}

void H2Connection::end_delivery(H2UpstreamStream& upstream_stream) {
  if (!upstream_stream.ListHook<H2DeliveringTag>::linked()) return;
  upstream_stream.ListHook<H2DeliveringTag>::unlink();
  --delivering_count_;
}

void H2Connection::flush_to_handler() {
  while (!delivering_.empty()) {
    --delivering_count_;
    delivering_.pop_front().flush_to_handler();
  }
}

void H2Connection::on_settings(const http::H2PeerSettings& settings) {
  exec::assume_on_loop();
  const bool lowered = settings.max_streams < std::exchange(peer_streams_, settings.max_streams);
  settings_received_ = true;
  max_header_list_ = settings.header_list;
  update_streams();
  if (lowered) pass_excess_on();
}

void H2Connection::limit_streams(std::uint32_t most) {
  max_streams_ = most;
  update_streams();
}

void H2Connection::update_streams() {
  const std::uint32_t limit = std::min(max_streams_, peer_streams_);
  if (limit == streams_ || retired_) return;
  streams_ = limit;
  if (in_pool_) origin_.destination->set_streams(index_, generation_, limit, host_.loop().now());
}

// The library keeps requests that exceed the limit until other streams end. Another session may serve them now.
void H2Connection::pass_excess_on() {
  std::uint32_t sent = 0;
  for (const H2UpstreamStream& upstream_stream : open_) sent += upstream_stream.head_begun() ? 1 : 0;
  std::uint32_t room = peer_streams_ - std::min(peer_streams_, sent);
  for (H2UpstreamStream& upstream_stream : open_) {
    if (upstream_stream.head_begun()) continue;
    if (room != 0) {
      --room;
    } else {
      upstream_stream.give_up_unsent("the origin allows no more streams (SETTINGS)");
    }
  }
}

void H2Connection::note_reset(http::H2Error error) {
  host_.count_reset(origin_, error);
}

void H2Connection::answered() {
  if (std::exchange(first_response_seen_, true) || retired_) return;
  origin_.destination->first_response(index_, generation_, streams_, host_.loop().now());
}

void H2Connection::on_goaway(http::StreamId last, http::H2Error error) {
  exec::assume_on_loop();
  goaway_last_ = last;
  if (error != http::H2Error::no_error) goaway_error_ = error;
  retire(pool::CloseCause::goaway);
  // A request may wait for the acknowledgement of a PING, or for the socket.
  for (H2UpstreamStream& upstream_stream : open_)
    upstream_stream.give_up_unsent("the HTTP/2 session ended before the request was sent");
}

// ---- sending ----

http::H2Stream* H2Connection::open(H2UpstreamStream& upstream_stream, const http::H2Fields& fields, bool end,
                                   bool head_request) {
  if (!works() || certificates_replaced() || open_count_ >= peer_streams_) return nullptr;
  // The pool lends a session regardless of its idle time, also to a request that must not be repeated.
  const Duration trusted = std::min(kPingAfter, origin_.destination->trust());
  const bool silent = open_.empty() && host_.loop().now() - last_read_ >= trusted;
  // A PING is useless if the socket blocks: it would wait behind the same bytes as the request. It is sent at once,
  // which the session does not allow while it receives; but then the origin is alive. `fields` refers to texts of the
  // request and of the loop's credentials, so nothing that sending calls may begin another request.
  const bool doubtful = !session_.receiving() && (silent || suspect_) && may_ping();
  if (doubtful && !awaiting_ping_ack_ && write_queue_.empty()) send_liveness_ping(true);
  if (!works()) return nullptr;  // the PING could not be sent
  Result<http::H2Stream*> stream = session_.request(fields, upstream_stream, end, head_request);
  if (!stream) return nullptr;
  open_.push_back(upstream_stream);
  ++open_count_;
  arm_timer();
  schedule_flush();
  return *stream;
}

void H2Connection::flush() {
  if (dead_) return;
  const bool writes = !write_failed_ && !write_queue_.empty();
  if (writes && write_queue_.flush(transport()) == WriteQueue::Sent::failed) on_write_failed();
  if (write_failed_) {
    if (transport().maybe_readable()) return schedule_flush();
    return fail(pool::CloseCause::error, {FaultKind::connection_terminated, Side::upstream, failure_reason_});
  }
  if (awaiting_ping_ack_) return;  // the PING may be among the unsent bytes; nothing may follow it
  send_pulled();
  fail_if_over();
}

void H2Connection::send_pulled() {
  const Instant now = host_.loop().now();
  while (works() && write_queue_.empty() && session_.wants_pull()) {
    BatchLease out = host_.buffers().lease_batch(write_queue_, transport());
    const bool good = session_.pull(out.text(), kPull, now);
    if (out.empty() && good) return;
    if (out.send() == WriteQueue::Sent::failed) return on_write_failed();
    if (good) continue;
    return fail(pool::CloseCause::error,
                {FaultKind::connection_terminated, Side::upstream, "the HTTP/2 session failed"});
  }
}

// The origin reads no more. Responses that it sent before are still valid, so run() reads them first.
void H2Connection::on_write_failed() {
  write_failed_ = true;
  awaiting_ping_ack_ = false;
  failure_reason_ = write_queue_.failure();
  write_queue_.clear();
  transport().on_readiness({.readable = true, .writable = false, .hangup = true});
  retire(pool::CloseCause::error);
  schedule_flush();
}

// ---- termination ----

void H2Connection::retire(pool::CloseCause cause) {
  if (std::exchange(retired_, true) || !in_pool_) return;
  origin_.destination->retire(index_, generation_, cause, host_.loop().now());
}

void H2Connection::fail(pool::CloseCause cause, const Fault& fault) {
  if (std::exchange(dead_, true)) return;
  timer_.disarm();
  write_queue_.clear();
  flush_to_handler();
  failure_reason_ = fault.detail;
  while (!open_.empty()) open_.front().connection_ended(fault);
  schedule_flush();
  retire(cause);
}

void H2Connection::schedule_failure_report(H2UpstreamStream& upstream_stream) {
  upstream_stream.ListHook<H2OpenTag>::unlink();
  broken_.push_back(upstream_stream);
  schedule_flush();
}

void H2Connection::report_failures() {
  while (!broken_.empty()) broken_.pop_front().report_failure();
}

// ---- liveness ----

Duration H2Connection::ping_timeout() const {
  return suspect_ ? kSuspectAfter : kPingTimeout;
}

void H2Connection::note_size(std::size_t bytes) {
  constexpr std::uint8_t kRemembered = 16;  // number of responses
  if (bytes > kNarrowWindow) {
    large_ = kRemembered;
  } else if (large_ != 0) {
    --large_;
  }
}

void H2Connection::on_stream_abandoned(Instant asked) {
  suspect_ = suspect_ || host_.loop().now() - std::max(last_read_, asked) >= kSuspectAfter;
}

// Returns true if one is in progress, or if the origin accepts another one. It may end a session without streams.
bool H2Connection::may_ping() const {
  if (ping_sent_at_ != Instant{} || open_.empty()) return true;
  return host_.loop().now() - last_ping_ >= kPingIntervals[std::min(std::size_t{pings_}, kPingIntervals.size() - 1)];
}

// Returns how many bytes of the output the origin's system has acknowledged.
std::int64_t H2Connection::delivered() {
  return static_cast<std::int64_t>(write_queue_.bytes_written()) -
         static_cast<std::int64_t>(transport().unacknowledged());
}

// Returns true if output that precedes the PING, such as a request body, was acknowledged since the last call: the
// origin or the network takes it slowly.
bool H2Connection::ping_is_on_its_way() {
  const std::int64_t before = std::exchange(delivered_, delivered());
  return before < ping_begins_ && before != delivered_;
}

// Sends a PING, or joins the one in progress. With `hold`, requests that are not sent yet wait for its acknowledgement.
void H2Connection::send_liveness_ping(bool hold) {
  if (ping_sent_at_ != Instant{}) {
    awaiting_ping_ack_ = hold;
    return;
  }
  ping_sent_at_ = last_ping_ = host_.loop().now();
  ++pings_;
  ping_begins_ = static_cast<std::int64_t>(write_queue_.bytes_written() + write_queue_.size());
  delivered_ = delivered();
  session_.ping(static_cast<std::uint64_t>(ping_sent_at_.time_since_epoch().count()));
  send_pulled();
  awaiting_ping_ack_ = hold;
}

// Arms the one timer for all streams. It checks periodically, and sends a PING if nothing was received. While one is
// not acknowledged, it looks more often, because no event says when output is.
void H2Connection::arm_timer() {
  if (timer_.armed() && ping_sent_at_ == Instant{}) return;
  const Instant now = host_.loop().now();
  timer_.arm(ping_sent_at_ != Instant{} ? std::min(now + ping_timeout() / kPingLooks, ping_sent_at_ + ping_timeout())
                                        : now + kPingAfter);
}

void H2Connection::on_timer() {
  exec::assume_on_loop();
  if (dead_) return;
  const Instant now = host_.loop().now();
  if (ping_sent_at_ != Instant{}) {
    if (ping_is_on_its_way()) ping_sent_at_ = now;
    if (now < ping_sent_at_ + ping_timeout()) return arm_timer();
    fail(pool::CloseCause::unhealthy,
         {FaultKind::connection_terminated, Side::upstream, "the origin does not answer PING"});
    return;
  }
  if (open_.empty()) return session_.release_memory();  // releases memory while idle
  if (now - last_read_ >= kPingAfter && may_ping()) send_liveness_ping(false);
  arm_timer();
}

}  // namespace carpool::proxy
