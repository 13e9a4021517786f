// AdminH2Connection as a producer: the holder of the role reads frames, writes the session's output, and returns each
// piece of work that may block as a task.
#include <algorithm>
#include <array>
#include <utility>

#include "proxy/http/error_reply.h"
#include "proxy/server/admin/h2_connection.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kVisit = std::size_t{64} * 1024;   // bytes read before other connections are served
constexpr std::size_t kRead = std::size_t{16} * 1024;    // bytes per read, on the thread's stack
constexpr std::size_t kUnsent = std::size_t{64} * 1024;  // unsent bytes above which nothing is read
constexpr std::size_t kPullBytes = std::size_t{128} * 1024;
constexpr std::size_t kMaxHeld = std::size_t{256} * 1024;  // bytes of unanswered requests
}  // namespace

exec::TaskPtr AdminH2Connection::produce() {
  exec::assume_on_loop();  // of the inbox, whose receiver is the holder of the role
  now_ = clock_();
  if (budget_ == 0) budget_ = kVisit;
  take_signals();
  inbox_.deliver(SIZE_MAX);
  while (state_ != AdminH2State::closed) {
    if (state_ == AdminH2State::lingering) {
      discard();
      break;
    }
    dispatch_complete();
    if (state_ == AdminH2State::leaving) leave_if_done();
    if (!write()) {
      close();
      break;
    }
    if (exec::TaskPtr task = next_task()) {
      free_dropped();
      return task;
    }
    if (!read_some() && !begin_to_leave()) break;
  }
  free_dropped();
  publish_deadline();
  return nullptr;
}

void AdminH2Connection::take_signals() {
  // acquire pairs with the release in signal().
  const std::uint32_t bits = signals_.exchange(0, std::memory_order_acquire);
  if (bits == 0 || state_ == AdminH2State::closed) return;
  const auto has = [bits](std::uint32_t one) { return (bits & one) != 0; };
  // A connection that is to leave reads once more, because a request may have arrived whose event is still pending.
  transport_->on_readiness({has(Signal::readable) || has(Signal::leave_client), has(Signal::writable),
                            has(Signal::hangup), has(Signal::urgent)});
  if (has(Signal::deadline_passed)) expire();
  if (has(Signal::leave_client) && state_ == AdminH2State::open) advance_to(AdminH2State::to_leave);
  if (state_ == AdminH2State::closed || !has(Signal::ended)) return;
  if (works() && !session_.over()) session_.goaway(http::H2Error::no_error);
  static_cast<void>(write());
  transport_->shut_write();
  close();
}

// Sends GOAWAY when everything that has arrived is read: a request that is still on its way may be sent again
// elsewhere. The client of a new connection waits for the response to its first request. Returns true if it did.
bool AdminH2Connection::begin_to_leave() {
  if (state_ != AdminH2State::to_leave || !asked_ || session_.over()) return false;
  advance_to(AdminH2State::leaving);
  session_.goaway(http::H2Error::no_error);
  return true;
}

// Ends /events, and the connection when its last response has been sent.
void AdminH2Connection::leave_if_done() {
  for (AdminH2Stream& one : sending_) {
    if (!one.listening) continue;
    stop_listening(one);
    session_.end(*one.stream);
  }
  if (idle() && !session_.over()) session_.terminate(http::H2Error::no_error, http::H2Abuse::none);
}

// ---- bytes ----

bool AdminH2Connection::flush() {
  if (!write_queue_.empty() && write_queue_.flush(*transport_) == WriteQueue::Sent::failed) return false;
  if (write_queue_.empty()) unsent_since_ = kNever;
  while (write_queue_.empty()) {
    WriteBatch out;
    static_cast<void>(session_.pull(out.text(), kPullBytes, now_));  // on a failure, over() is true
    if (out.empty()) break;
    if (write_queue_.send(*transport_, out) == WriteQueue::Sent::failed) return false;
  }
  if (!write_queue_.empty() && unsent_since_ == kNever) unsent_since_ = now_;
  return true;
}

bool AdminH2Connection::write() {
  if (!flush()) return false;
  if (session_.over() && write_queue_.empty()) linger();
  return true;
}

bool AdminH2Connection::may_read() const {
  return works() && !session_.over() && write_queue_.size() < kUnsent && transport_->maybe_readable();
}

bool AdminH2Connection::read_some() {
  if (!may_read()) return false;
  if (budget_ == 0) {
    request_loop(LoopRequest::resume);  // no event announces the remaining bytes
    return false;
  }
  std::array<char, kRead> buffer;
  const net::IoResult io = transport_->read(buffer);
  if (io.io == net::Io::would_block) return false;
  if (io.io != net::Io::ok) {
    close();
    return false;
  }
  budget_ -= std::min(budget_, io.bytes);
  static_cast<void>(session_.receive({buffer.data(), io.bytes}, now_));  // on a Fault, over() is true after its GOAWAY
  return true;
}

// Called when everything is sent. Sends FIN, then discards further input, so that no reset overtakes the GOAWAY.
void AdminH2Connection::linger() {
  if (!works()) return;
  advance_to(AdminH2State::lingering);
  abuse_.store(session_.abuse(), std::memory_order_relaxed);
  transport_->shut_write();
  for (Streams* all : {&arriving_, &complete_, &ready_, &sending_}) {
    while (!all->empty()) drop(all->front());
  }
  idle_since_ = now_ + net::kLingerTime - kAdminTimeout;
}

void AdminH2Connection::discard() {
  std::array<char, kRead> buffer;
  if (discarded_.discard(*transport_, buffer) != net::Io::would_block) close();
}

// Ends the connection; the loop unregisters the socket. Streams in use by a task or the loop are freed when they
// return.
void AdminH2Connection::close() {
  if (state_ == AdminH2State::closed) return;
  advance_to(AdminH2State::closed);
  abuse_.store(session_.abuse(), std::memory_order_relaxed);
  for (Streams* all : {&arriving_, &complete_, &ready_, &sending_}) {
    while (!all->empty()) drop(all->front());
  }
  request_loop(LoopRequest::end_it);
}

// ---- deadlines ----

// Returns true if no stream needs the connection. Streams that are in no list, because their response was sent before
// their request was complete, do not count.
bool AdminH2Connection::idle() const {
  return arriving_.empty() && complete_.empty() && ready_.empty() && sending_.empty() && !busy();
}

void AdminH2Connection::publish_deadline() {
  budget_ = 0;  // the next visit gets its own
  if (state_ == AdminH2State::closed) return;
  const Instant next = next_deadline();
  const bool earlier = next < published_;
  published_ = next;
  deadline_.store(next.time_since_epoch().count(), std::memory_order_relaxed);
  if (earlier) request_loop(LoopRequest::rearm);
}

// Returns a time at most kAdminTimeout from now, even if nothing can expire. The loop's timer reads it when the
// previous one has passed, so it almost never has to be rearmed.
Instant AdminH2Connection::next_deadline() {
  Instant next = now_ + kAdminTimeout;
  if (state_ == AdminH2State::lingering) return idle_since_ + kAdminTimeout;
  if (idle()) next = std::min(next, idle_since_ + kAdminTimeout);
  for (const Instant since : {session_.head_began(), unsent_since_}) {
    if (since != kNever) next = std::min(next, since + kAdminTimeout);
  }
  for (Streams* all : {&arriving_, &ready_, &sending_}) {
    for (const AdminH2Stream& one : *all) next = std::min(next, one.deadline);
  }
  return std::min(next, retry_at_);
}

void AdminH2Connection::expire() {
  published_ = kNever;  // the loop's timer is not armed, so publish_deadline() must arm it
  if (now_ >= retry_at_) retry_at_ = kNever;
  const auto passed = [this](Instant since) { return since != kNever && now_ >= since + kAdminTimeout; };
  const bool lingering = state_ == AdminH2State::lingering;
  if (lingering ? passed(idle_since_) : passed(unsent_since_)) return close();  // a reset would not reach the client
  if (lingering) return;
  for (Streams* all : {&arriving_, &ready_, &sending_}) expire(*all);
  if (passed(session_.head_began())) {
    session_.terminate(http::H2Error::enhance_your_calm, http::H2Abuse::none);
  } else if (idle() && passed(idle_since_)) {
    session_.terminate(http::H2Error::no_error, http::H2Abuse::none);
  }
}

// Resets the streams whose request did not arrive, or whose response was not read, in time.
void AdminH2Connection::expire(Streams& streams) {
  for (AdminH2Stream& one : streams) {
    if (now_ < one.deadline) continue;
    session_.reset(*std::exchange(one.stream, nullptr), http::H2Error::cancel);
    drop(one);
  }
}

// release: on_loop_requests() acquires the bits and what was written before them.
void AdminH2Connection::request_loop(std::uint32_t bits) {
  if (loop_requests_.fetch_or(bits, std::memory_order_acq_rel) != 0) return;
  enter();
  loop_.post(loop_request_mail_);
}

// ---- requests ----

http::H2StreamUser* AdminH2Connection::on_request(http::H2Stream& stream, http::RequestHead& head) {
  auto request =
      std::make_unique<AdminH2Stream>(static_cast<AdminH2Stream::Owner&>(*this), stream, head, now_ + kAdminTimeout);
  idle_since_ = now_;
  asked_ = true;
  (request->no_room ? complete_ : arriving_).push_back(*request);
  return request.release();  // owned by the lists until drop()
}

void AdminH2Connection::on_refused_head(http::H2Stream& stream, FaultKind kind) {
  http::RequestHead none;
  if (stream.head_request()) none.method = "HEAD";
  http::H2StreamUser* const user = on_request(stream, none);
  stream.set_user(user);
  auto& request = static_cast<AdminH2Stream&>(*user);
  request.bad_head = true;
  request.response = admin::error_response(http::fault_status(kind).status, http::h2_refused_head_reason(kind));
  move(request, complete_);
}

bool AdminH2Connection::may_hold(std::size_t bytes) {
  if (held_ + bytes > kMaxHeld) return false;
  held_ += bytes;
  return true;
}

void AdminH2Connection::consume(AdminH2Stream& stream, std::size_t bytes) {
  if (stream.stream != nullptr) session_.consume(*stream.stream, bytes);
}

void AdminH2Connection::on_complete(AdminH2Stream& stream) {
  if (!stream.responded) move(stream, complete_);
}

void AdminH2Connection::on_closed(AdminH2Stream& stream) {
  if (!stream.away) drop(stream);  // otherwise dropped when it returns
}

}  // namespace carpool::proxy
