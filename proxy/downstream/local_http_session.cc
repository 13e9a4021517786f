#include "proxy/downstream/local_http_session.h"

#include <utility>

#include "exec/read_buffer.h"

namespace carpool::proxy {

namespace {
constexpr int kStepsPerTurn = 64;  // other sessions are served after this number
}

LocalHttpSession::LocalHttpSession(exec::Loop& loop, Handler& handler, std::unique_ptr<net::Transport> transport,
                                   const Bounds& bounds, http::BodySink* sink)
    : loop_(loop),
      handler_(handler),
      bounds_(bounds),
      transport_(std::move(transport)),
      timer_(exec::Timer::bind<&LocalHttpSession::on_timer>(loop, *this)),
      request_(bounds.head, bounds.body, sink) {}

LocalHttpSession::LocalHttpSession(exec::Loop& loop, Handler& handler, std::unique_ptr<tls::TlsTransport> stream,
                                   const Bounds& bounds, http::BodySink* sink)
    : LocalHttpSession(loop, handler, std::unique_ptr<net::Transport>(), bounds, sink) {
  handshake_ = stream.get();
  transport_ = std::move(stream);
}

LocalHttpSession::~LocalHttpSession() = default;

Status LocalHttpSession::start() {
  Result<exec::WatchKey> key = loop_.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(loop_.now() + (established() ? bounds_.timeout : bounds_.handshake));
  if (transport_->maybe_readable()) loop_.defer(*this);  // no event announces what TLS has buffered
  return Done{};
}

void LocalHttpSession::on_ready(exec::Ready ready) {
  transport_->on_readiness(ready);
  advance();
}

void LocalHttpSession::on_timer() {
  exec::assume_on_loop();
  handler_.on_timeout();
}

void LocalHttpSession::advance() {
  for (int steps = 0; !over_ && step_handshake() && flush(); ++steps) {
    if (steps == kStepsPerTurn) return loop_.defer(*this);
    const Next next = handler_.next();
    if (next == Next::wait) return;
    if (next == Next::again) continue;
    if (close_when_sent_) return end();
    if (read_some()) continue;
    if (ends_soon_ && request_.at_rest()) end();
    return;
  }
}

bool LocalHttpSession::step_handshake() {
  if (established()) return true;
  const Result<bool> done = handshake_->handshake();
  if (!done) end();
  if (!done || !*done) return false;
  handshake_ = nullptr;
  restart_timer();
  handler_.on_established();
  return true;
}

bool LocalHttpSession::read_some() {
  const exec::ReadBuffer buffer(loop_);
  switch (request_.read(*transport_, buffer.span())) {
    case BufferedRequest::ReadStatus::nothing:
      return false;
    case BufferedRequest::ReadStatus::closed:
      end();
      return false;
    case BufferedRequest::ReadStatus::malformed:
      close_when_sent_ = true;
      handler_.on_malformed(request_.fault());
      return true;
    case BufferedRequest::ReadStatus::head:
      handler_.on_head();
      return true;
    case BufferedRequest::ReadStatus::request:
      close_when_sent_ |= ends_soon_;
      handler_.on_request();
      return true;
    case BufferedRequest::ReadStatus::partial:
      break;
  }
  if (!request_.take_expectation()) return true;
  WriteBatch out;
  out.text().append("HTTP/1.1 100 Continue\r\n\r\n");
  return send(out);
}

bool LocalHttpSession::discard_input() {
  request_.forget();
  if (!transport_->maybe_readable()) return false;
  const exec::ReadBuffer buffer(loop_);
  const net::IoResult io = transport_->read(buffer.span());
  if (io.io != net::Io::ok && io.io != net::Io::would_block) end();
  return io.io == net::Io::ok;
}

bool LocalHttpSession::send(WriteBatch& out) {
  if (write_queue_.send(*transport_, out) == WriteQueue::Sent::failed) end();
  return !over_;
}

bool LocalHttpSession::flush() {
  if (write_queue_.empty()) return true;
  const WriteQueue::Sent sent = write_queue_.flush(*transport_);
  if (sent == WriteQueue::Sent::failed) end();
  return sent == WriteQueue::Sent::all;
}

void LocalHttpSession::end_soon() {
  ends_soon_ = true;
  // Reads once more, because a request may have arrived whose event is still pending. Closing would lose it and reset
  // the connection.
  if (!over_) transport_->on_readiness({true, false, false});
  advance();
}

void LocalHttpSession::end() {
  if (std::exchange(over_, true)) return;
  timer_.disarm();
  loop_.unwatch(transport_->fd(), key_);
  handler_.on_end();
}

}  // namespace carpool::proxy
