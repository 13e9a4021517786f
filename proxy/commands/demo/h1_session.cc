#include "proxy/commands/demo/h1_session.h"

#include <algorithm>
#include <utility>

#include "exec/read_buffer.h"

namespace carpool::proxy {
namespace {

constexpr Duration kStall = std::chrono::seconds(30);  // without progress inside a request or a response
constexpr Duration kLinger = std::chrono::seconds(1);
constexpr int kStepsPerTurn = 64;  // then other sessions continue

}  // namespace

DemoH1Session::DemoH1Session(exec::Loop& loop, Owner& owner, std::unique_ptr<net::Transport> transport,
                             std::uint64_t number, Duration idle_timeout)
    : loop_(loop),
      owner_(owner),
      transport_(std::move(transport)),
      number_(number),
      idle_timeout_(idle_timeout),
      timer_(exec::Timer::bind<&DemoH1Session::on_timer>(loop, *this)),
      reader_(http::Limits{}) {}

DemoH1Session::DemoH1Session(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream,
                             std::uint64_t number, Duration idle_timeout)
    : DemoH1Session(loop, owner, std::unique_ptr<net::Transport>(), number, idle_timeout) {
  stream_ = stream.get();
  transport_ = std::move(stream);
  phase_ = Phase::handshake;
}

DemoH1Session::~DemoH1Session() {
  exec::assume_on_loop();
  loop_.unwatch(transport_->fd(), key_);
}

Status DemoH1Session::start() {
  Result<exec::WatchKey> key = loop_.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  arm();
  return Done{};
}

// ---- event loop turns ----

void DemoH1Session::on_ready(exec::Ready ready) {
  transport_->on_readiness(ready);
  advance();
}

void DemoH1Session::run() {
  advance();
}

void DemoH1Session::on_timer() {
  exec::assume_on_loop();
  if (phase_ == Phase::delay) {
    answer();
  } else {
    phase_ = Phase::closed;  // the idle, stall or linger timeout passed
  }
  advance();
}

// May destroy this connection: must be the last call.
void DemoH1Session::advance() {
  int steps = kStepsPerTurn;
  while (steps > 0 && step()) --steps;
  if (phase_ == Phase::closed) return owner_.on_connection_end(*this);
  if (steps == 0) loop_.defer(*this);
  arm();
}

// Runs one step; returns false if nothing remains to do until the next event.
bool DemoH1Session::step() {
  if (phase_ == Phase::closed) return false;
  if (phase_ == Phase::handshake) return shake();
  if (sent_ < out_.size() && !flush()) return false;
  if (close_when_sent_ && fill_left_ == 0 && phase_ != Phase::linger) linger();
  switch (phase_) {
    case Phase::delay:
      return false;
    case Phase::fill:
      fill();
      return true;
    case Phase::linger:
      in_.clear();
      return read_some();
    default:
      break;
  }
  return feed_on_ || used_ < in_.size() ? feed() : read_some();
}

bool DemoH1Session::shake() {
  const Result<bool> done = stream_->handshake();
  if (!done) phase_ = Phase::closed;
  if (!done || !*done) return false;
  stream_ = nullptr;
  protocol_.append(" over ").append(transport_->security().version);
  phase_ = Phase::head;
  return true;
}

// Returns true if everything was sent.
bool DemoH1Session::flush() {
  while (sent_ < out_.size()) {
    const iovec rest{out_.data() + sent_, out_.size() - sent_};
    const net::IoResult io = transport_->write({&rest, 1});
    if (io.io == net::Io::would_block) return false;
    if (io.io != net::Io::ok) {
      phase_ = Phase::closed;
      return false;
    }
    sent_ += io.bytes;
  }
  out_.clear();
  sent_ = 0;
  return true;
}

bool DemoH1Session::read_some() {
  if (eof_) {  // everything before the FIN has been answered
    transport_->shut_write();
    phase_ = Phase::closed;
    return false;
  }
  if (!transport_->maybe_readable()) return false;
  const exec::ReadBuffer buffer(loop_);
  const net::IoResult io = transport_->read(buffer.span());
  in_.assign(buffer.view(io.io == net::Io::ok ? io.bytes : 0));
  used_ = 0;
  eof_ = io.io == net::Io::eof;
  if (io.io == net::Io::failed) phase_ = Phase::closed;
  return io.io == net::Io::ok || eof_;
}

// ---- requests ----

bool DemoH1Session::feed() {
  feed_on_ = false;
  const Result<http::ParseResult> fed = reader_.feed(std::string_view(in_).substr(used_), head_, *this);
  if (!fed) {
    refuse(fed.fault());
    return true;
  }
  used_ += fed->taken;
  if (fed->progress == http::Progress::head) on_head();
  if (fed->progress == http::Progress::message) on_message();
  return true;
}

void DemoH1Session::on_head() {
  feed_on_ = true;  // a request without a body ends here
  ++requests_;
  reply_ = demo_reply(head_, visit());
  if (head_.expect_continue && head_.framing != http::Framing::none) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  phase_ = reply_.echo ? Phase::echo : Phase::body;
  trailers_.clear();
  if (reply_.echo) write_demo_head(out_, reply_, head_, visit());
}

void DemoH1Session::on_body(std::string_view bytes) {
  if (phase_ != Phase::echo || bytes.empty() || head_.method == "HEAD") return;
  const bool chunked = head_.framing == http::Framing::chunked;
  if (chunked) http::write_chunk_head(out_, bytes.size());
  out_ += bytes;
  if (chunked) out_ += "\r\n";
}

void DemoH1Session::on_trailer(std::string_view name, std::string_view value) {
  if (phase_ == Phase::echo) trailers_.add(name, value);
}

void DemoH1Session::on_message() {
  reader_.reset();
  if (phase_ == Phase::echo) {
    const bool chunked = head_.framing == http::Framing::chunked && head_.method != "HEAD";
    if (chunked) http::write_last_chunk(out_, trailers_);
    return end_of_answer(reply_.close || !head_.keep_alive);
  }
  if (reply_.delay <= Duration::zero()) return answer();
  phase_ = Phase::delay;
  due_ = loop_.now() + reply_.delay;
}

void DemoH1Session::answer() {
  write_demo_head(out_, reply_, head_, visit());
  if (head_.method != "HEAD") {
    out_ += reply_.body;
    fill_left_ = reply_.fill;
  }
  end_of_answer(reply_.close || !head_.keep_alive);
}

// Malformed or oversized input: replies with an error, or, in the middle of an echo, breaks the response off.
void DemoH1Session::refuse(const Fault& fault) {
  if (phase_ == Phase::echo) return end_of_answer(true);
  head_.clear();
  write_demo_head(out_, demo_refusal(fault), head_, visit());
  out_ += demo_refusal(fault).body;
  end_of_answer(true);
}

void DemoH1Session::end_of_answer(bool close) {
  close_when_sent_ = close;
  phase_ = fill_left_ > 0 ? Phase::fill : Phase::head;
}

void DemoH1Session::fill() {
  const std::string_view block = demo_fill();
  const std::size_t size = std::min<std::uint64_t>(block.size(), fill_left_);
  out_ += block.substr(0, size);
  fill_left_ -= size;
  if (fill_left_ == 0) phase_ = Phase::head;
}

// Closing with unread bytes causes a reset, which destroys a response in flight (RFC 9112 §9.6).
void DemoH1Session::linger() {
  transport_->shut_write();
  phase_ = Phase::linger;
  feed_on_ = false;
  due_ = loop_.now() + kLinger;
}

// Every event extends the timeout, except the fixed deadlines.
void DemoH1Session::arm() {
  if (phase_ == Phase::delay || phase_ == Phase::linger) return timer_.arm(due_);
  const bool rests = phase_ == Phase::head && !reader_.in_head() && sent_ == out_.size();
  timer_.arm(loop_.now() + (rests ? idle_timeout_ : kStall));
}

}  // namespace carpool::proxy
