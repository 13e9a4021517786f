#include "proxy/commands/demo/h1_session.h"

#include <utility>

namespace carpool::proxy {
namespace {

using Next = LocalHttpSession::Next;

constexpr Duration kStall = std::chrono::seconds(30);  // timeout without progress inside a request or a response
constexpr Duration kLinger = std::chrono::seconds(1);

}  // namespace

LocalHttpSession::Bounds DemoH1Session::bounds(Duration idle_timeout) {
  return {http::Limits{}, 0, kStall, idle_timeout};
}

void DemoH1Session::on_established() {
  protocol_.append(" over ").append(http_.transport().security().version);
}

// Called when everything is sent: produces the next part, or sets the idle deadline of the client.
Next DemoH1Session::next() {
  if (!out_.empty() || fill_left_ != 0) {
    send_some();
    return Next::again;
  }
  if (delays_) return Next::wait;
  if (http_.closes_when_sent()) return linger();
  http_.wait_until(loop_.now() + (http_.request().at_rest() ? idle_timeout_ : kStall));
  return Next::read;
}

void DemoH1Session::send_some() {
  const std::string text = std::exchange(out_, {});
  const std::string_view block = demo_fill().substr(0, fill_left_);
  fill_left_ -= block.size();
  WriteBatch batch;
  batch.add(text);
  batch.add(block);
  if (http_.send(batch)) http_.wait_until(loop_.now() + kStall);
}

// Discards input before it closes, because closing with unread bytes would cause a reset that destroys a response in
// flight (RFC 9112 §9.6).
Next DemoH1Session::linger() {
  if (!std::exchange(lingers_, true)) {
    http_.transport().shut_write();
    http_.wait_until(loop_.now() + kLinger);
  }
  return http_.discard_input() ? Next::again : Next::wait;
}

void DemoH1Session::on_timeout() {
  if (!delays_) return end();
  respond();
  http_.advance();
}

void DemoH1Session::on_end() {
  http_.transport().shut_write();
  owner_.on_connection_end(*this);
}

// ---- requests ----

void DemoH1Session::on_head() {
  ++requests_;
  reply_ = demo_reply(head(), visit());
  if (head().expect_continue && head().framing != http::Framing::none) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  trailers_.clear();
  echoes_ = reply_.echo;
  if (echoes_) write_demo_head(out_, reply_, head(), visit());
}

void DemoH1Session::on_body(std::string_view bytes) {
  if (!echoes_ || bytes.empty() || head().method == "HEAD") return;
  const bool chunked = head().framing == http::Framing::chunked;
  if (chunked) http::write_chunk_head(out_, bytes.size());
  out_ += bytes;
  if (chunked) out_ += "\r\n";
}

void DemoH1Session::on_trailer(std::string_view name, std::string_view value, bool sensitive) {
  if (echoes_) trailers_.add(name, value, sensitive);
}

void DemoH1Session::on_request() {
  if (echoes_) {
    const bool chunked = head().framing == http::Framing::chunked && head().method != "HEAD";
    if (chunked) http::write_last_chunk(out_, trailers_);
    return end_of_response();
  }
  delays_ = reply_.delay > Duration::zero();
  if (!delays_) return respond();
  http_.wait_until(loop_.now() + reply_.delay);
}

void DemoH1Session::respond() {
  delays_ = false;
  write_demo_head(out_, reply_, head(), visit());
  if (head().method != "HEAD") {
    out_ += reply_.body;
    fill_left_ = reply_.fill;
  }
  end_of_response();
}

void DemoH1Session::end_of_response() {
  if (reply_.close || !head().keep_alive) http_.close_when_sent();
  echoes_ = false;
  http_.done_with_request();
}

// Truncates an echo, so that it does not look complete.
void DemoH1Session::on_malformed(const Fault& fault) {
  if (echoes_) return;
  const DemoReply refusal = demo_refusal(fault);
  write_demo_head(out_, refusal, {}, visit());
  out_ += refusal.body;
}

}  // namespace carpool::proxy
