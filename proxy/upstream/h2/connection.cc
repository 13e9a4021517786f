#include "proxy/upstream/h2/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "exec/read_buffer.h"
#include "proxy/net/io_limits.h"

namespace carpool::proxy {

namespace {
// On all streams together the session's window never holds anybody up: a client that does not read stops its own
// stream, not its neighbours'.
constexpr std::uint32_t kWindow = 4 * 1024 * 1024;
constexpr std::size_t kPull = std::size_t{64} * 1024;  // bytes of frames in one write
constexpr std::uint32_t kMostSpeaking = 8;             // each may hold a batch of the loop

// After so long without a byte a PING goes in front of the next request, or asks for those that hang.
constexpr Duration kQuiet = std::chrono::seconds(5);
constexpr Duration kPatience = std::chrono::seconds(3);  // for its answer
// A stream that was given up after so long without a byte on the connection is reason enough; then no more time is
// given either.
constexpr Duration kDoubt = std::chrono::seconds(1);
constexpr unsigned kUserTimeoutMs = 10000;  // bytes that nobody acknowledges

http::H2Options session_options() {
  http::H2Options options;
  options.head = SessionHost::response_limits();
  options.stream_window = kNarrowWindow;
  options.window = kWindow;
  options.shared_window_is_free = true;
  return options;
}
}  // namespace

H2Connection::H2Connection(SessionHost& host, OriginContext& context, std::uint64_t id, net::Dialed dialed, Instant now)
    : Connection(id, std::move(dialed), now),
      host_(host),
      origin_(context),
      session_(http::H2Role::client, session_options(), *this),
      timer_(exec::Timer::bind<&H2Connection::on_timer>(host.loop(), *this)),
      streams_(context.pool.max_streams),
      last_read_(now) {
  const unsigned limit = kUserTimeoutMs;
  ::setsockopt(transport().fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);  // fails on Unix sockets
}

// Says goodbye if that costs no wait.
H2Connection::~H2Connection() {
  exec::assume_on_loop();
  CARPOOL_ASSERT(open_.empty() && broken_.empty());
  exec::Deferred::unlink();
  if (dead_ || !outbox_.empty()) return;
  session_.goaway(http::H2Error::no_error);
  send_pulled();
}

Result<bool> H2Connection::greet(exec::Ready ready) {
  transport().note(ready);
  read_some();
  flush();
  if (!dead_ && !retired_) return greeted_ && acked_;
  return Fault{FaultKind::connection_terminated, Side::upstream,
               "no HTTP/2 session with the origin: " + (dead_ ? why_ : std::string("it said GOAWAY"))};
}

void H2Connection::take_place(std::uint32_t index, std::uint32_t generation) {
  index_ = index;
  generation_ = generation;
  placed_ = true;
  soon();
}

void H2Connection::soon() {
  if (!exec::Deferred::linked()) host_.loop().defer(*this);
}

void H2Connection::run() {
  if (transport().maybe_readable()) read_some();
  flush();
  tell_broken();
}

// ---- what comes ----

void H2Connection::on_ready(exec::Ready ready) {
  transport().note(ready);
  read_some();
  if (!outbox_.empty() || session_.wants_pull() || session_.over() || !broken_.empty()) soon();
}

void H2Connection::read_some() {
  std::size_t budget = kTurnBytes;
  const Instant now = host_.loop().now();
  while (!dead_ && transport().maybe_readable()) {
    if (budget == 0) return soon();
    const exec::ReadBuffer buffer(host_.loop());
    const net::IoResult io = transport().read(buffer.span());
    if (io.io == net::Io::would_block) break;
    if (io.io != net::Io::ok) {
      const bool eof = io.io == net::Io::eof;
      return die(eof ? pool::Closed::peer_closed : pool::Closed::error,
                 {FaultKind::connection_terminated, Side::upstream,
                  eof ? std::string("the origin closed the connection without a response") : std::string(io.detail)});
    }
    budget -= std::min(budget, io.bytes);
    last_read_ = now;
    asked_ = {};
    doubted_ = false;
    if (std::exchange(holding_, false)) soon();
    Status received = session_.receive(buffer.view(io.bytes), now);
    pass_on();
    if (!received) {
      send_pulled();  // why it ends
      return die(pool::Closed::error, received.take_fault());
    }
  }
}

// It may end by its own rules: all was said after GOAWAY, or the peer broke a rule that concerns every stream.
void H2Connection::look_for_the_end() {
  if (dead_ || !session_.over()) return;
  die(pool::Closed::error,
      {FaultKind::connection_terminated, Side::upstream, "the HTTP/2 session ended with this stream open"});
}

void H2Connection::speaking(H2Carrier& carrier) {
  if (carrier.ListHook<H2SpeakingTag>::linked()) return;
  if (speaking_count_ == kMostSpeaking) pass_on();
  speaking_.push_back(carrier);
  ++speaking_count_;
}

void H2Connection::silent(H2Carrier& carrier) {
  if (!carrier.ListHook<H2SpeakingTag>::linked()) return;
  carrier.ListHook<H2SpeakingTag>::unlink();
  --speaking_count_;
}

void H2Connection::pass_on() {
  while (!speaking_.empty()) {
    --speaking_count_;
    speaking_.pop_front().pass_on();
  }
}

void H2Connection::on_settings(const http::H2PeerSettings& settings) {
  exec::assume_on_loop();
  const std::uint32_t most = std::min(origin_.pool.max_streams, settings.max_streams);
  greeted_ = true;
  if (most == streams_ || retired_) return;
  streams_ = most;
  if (placed_) origin_.destination->set_streams(index_, generation_, most, host_.loop().now());
}

void H2Connection::note_reset(http::H2Error error) {
  host_.count_reset(origin_, error);
}

void H2Connection::answered() {
  if (std::exchange(proven_, true) || retired_) return;
  origin_.destination->first_answer(index_, generation_, streams_, host_.loop().now());
}

void H2Connection::on_goaway(http::StreamId last, http::H2Error) {
  exec::assume_on_loop();
  goaway_last_ = last;
  retire(pool::Closed::goaway);
}

// ---- what goes ----

http::H2Stream* H2Connection::open(H2Carrier& carrier, const http::H2Fields& fields, bool end, bool head_request) {
  if (dead_) return nullptr;
  const bool quiet = open_.empty() && host_.loop().now() - last_read_ >= kQuiet;
  // Behind bytes that the socket does not take the question would wait as the request does: there is no use in holding.
  if (!holding_ && outbox_.empty() && (quiet || doubted_)) ask_for_life(true);
  if (dead_) return nullptr;  // there was nobody to ask
  Result<http::H2Stream*> stream = session_.request(fields, carrier, end, head_request);
  if (!stream) return nullptr;
  open_.push_back(carrier);
  arm_timer();
  soon();
  return *stream;
}

void H2Connection::flush() {
  if (dead_) return;
  if (!outbox_.empty() && outbox_.flush(transport()) == Outbox::Sent::failed) {
    return die(pool::Closed::error, {FaultKind::connection_terminated, Side::upstream, std::string(outbox_.failure())});
  }
  if (holding_) return;  // the question may have been among what waited; nothing goes behind it
  send_pulled();
  look_for_the_end();
}

void H2Connection::send_pulled() {
  const Instant now = host_.loop().now();
  while (!dead_ && outbox_.empty() && session_.wants_pull()) {
    BatchLease out = host_.buffers().lease_batch(outbox_, transport());
    const bool good = session_.pull(out.text(), kPull, now);
    if (out.empty() && good) return;
    const bool sent = out.send() != Outbox::Sent::failed;
    if (good && sent) continue;
    const std::string why(sent ? std::string_view("the HTTP/2 session failed") : outbox_.failure());
    return die(pool::Closed::error, {FaultKind::connection_terminated, Side::upstream, why});
  }
}

// ---- its end ----

void H2Connection::retire(pool::Closed cause) {
  if (std::exchange(retired_, true) || !placed_) return;
  origin_.destination->retire(index_, generation_, cause, host_.loop().now());
}

void H2Connection::die(pool::Closed cause, const Fault& fault) {
  if (std::exchange(dead_, true)) return;
  timer_.disarm();
  outbox_.clear();
  pass_on();
  why_ = fault.detail;
  while (!open_.empty()) open_.front().connection_ended(fault);
  soon();
  retire(cause);
}

void H2Connection::tell_later(H2Carrier& carrier) {
  carrier.ListHook<H2CarrierTag>::unlink();
  broken_.push_back(carrier);
  soon();
}

void H2Connection::tell_broken() {
  while (!broken_.empty()) broken_.pop_front().tell();
}

// ---- is it alive? ----

Duration H2Connection::patience() const {
  return doubted_ ? kDoubt : kPatience;
}

void H2Connection::note_size(std::size_t bytes) {
  constexpr std::uint8_t kRemembered = 16;  // answers
  if (bytes > kNarrowWindow) {
    large_ = kRemembered;
  } else if (large_ != 0) {
    --large_;
  }
}

void H2Connection::given_up_on(Instant asked) {
  doubted_ = doubted_ || host_.loop().now() - std::max(last_read_, asked) >= kDoubt;
}

// Whoever waits for an answer already waits on, and from now on all else with it.
void H2Connection::ask_for_life(bool hold) {
  if (asked_ != Instant{}) {
    holding_ = hold;
    return;
  }
  asked_ = host_.loop().now();
  session_.ping(static_cast<std::uint64_t>(asked_.time_since_epoch().count()));
  send_pulled();
  holding_ = hold;
}

// One timer for all streams: it looks now and then, and asks when nothing came.
void H2Connection::arm_timer() {
  if (timer_.armed() && asked_ == Instant{}) return;
  timer_.arm(asked_ != Instant{} ? asked_ + patience() : host_.loop().now() + kQuiet);
}

void H2Connection::on_timer() {
  exec::assume_on_loop();
  if (dead_) return;
  const Instant now = host_.loop().now();
  if (asked_ != Instant{} && now >= asked_ + patience()) {
    die(pool::Closed::unhealthy, {FaultKind::connection_terminated, Side::upstream, "the origin answers no PING"});
    return;
  }
  if (open_.empty()) return session_.rest();  // at rest it owns little
  if (asked_ == Instant{} && now - last_read_ >= kQuiet) ask_for_life(false);
  arm_timer();
}

}  // namespace carpool::proxy
