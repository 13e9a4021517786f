#include "proxy/commands/webhook/session.h"

#include <array>
#include <utility>
#include <vector>

#include "exec/read_buffer.h"
#include "proxy/http/error_reply.h"

namespace carpool::proxy {
namespace {

constexpr http::Limits kLimits{16 * 1024, 100, 8 * 1024};
// A review contains the object and, for an update, its previous version; the API server limits each to 1.5 MiB.
constexpr std::size_t kMaxBody = std::size_t{4} * 1024 * 1024;
constexpr Duration kHandshakePatience = std::chrono::seconds(5);
constexpr Duration kPatience = std::chrono::seconds(30);  // from one response until the next request is complete

}  // namespace

WebhookSession::WebhookSession(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream)
    : loop_(loop),
      owner_(owner),
      stream_(std::move(stream)),
      timer_(exec::Timer::bind<&WebhookSession::on_timer>(loop, *this)),
      intake_(kLimits, kMaxBody) {}

WebhookSession::~WebhookSession() = default;

Status WebhookSession::start() {
  Result<exec::WatchKey> key = loop_.watch(stream_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(loop_.now() + kHandshakePatience);
  return Done{};
}

void WebhookSession::on_ready(exec::Ready ready) {
  stream_->on_readiness(ready);
  advance();
}

void WebhookSession::on_timer() {
  exec::assume_on_loop();
  end();
}

void WebhookSession::advance() {
  while (!over_) {
    if (!shaken_ && !shake()) break;
    if (!flush()) break;
    if (last_) return end();
    if (!read_some()) break;
  }
  if (failed_) end();
}

bool WebhookSession::shake() {
  const Result<bool> done = stream_->handshake();
  failed_ = !done;
  shaken_ = done && *done;
  if (!shaken_) return false;
  timer_.arm(loop_.now() + kPatience);
  owner_.shaken(*this);
  return true;
}

bool WebhookSession::read_some() {
  const exec::ReadBuffer buffer(loop_);
  const BufferedRequest::Got got = intake_.read(*stream_, buffer.span());
  if (got == BufferedRequest::Got::nothing) return false;
  failed_ = failed_ || got == BufferedRequest::Got::closed;
  if (failed_) return false;
  if (got == BufferedRequest::Got::malformed) refuse();
  if (got == BufferedRequest::Got::request) reply();
  return true;
}

void WebhookSession::reply() {
  last_ = last_ || !intake_.head().keep_alive;
  send(intake_.too_long() ? Answer{413, "application/json", R"({"error": "the review is too long"})"}
                          : owner_.answer(intake_.head(), intake_.body()));
  intake_.done();
  timer_.arm(loop_.now() + kPatience);
  owner_.waits(*this);
}

void WebhookSession::refuse() {
  last_ = true;
  std::string text;
  http::write_error_reply(text, intake_.fault(), http::Version::http11, true, false, "carpool");
  write(text);
}

void WebhookSession::send(const Answer& answer) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + (answer.status == 200 ? " OK" : " Refused");
  text.append("\r\nContent-Type: ").append(answer.content_type);
  text.append("\r\nContent-Length: ").append(std::to_string(answer.body.size()));
  text.append(last_ ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");
  if (intake_.head().method != "HEAD") text += answer.body;
  write(text);
}

void WebhookSession::write(std::string_view bytes) {
  WriteBatch out;
  out.add(bytes);
  failed_ = write_queue_.send(*stream_, out) == WriteQueue::Sent::failed;
}

bool WebhookSession::flush() {
  if (failed_) return false;
  if (write_queue_.empty()) return true;
  const WriteQueue::Sent sent = write_queue_.flush(*stream_);
  failed_ = sent == WriteQueue::Sent::failed;
  return sent == WriteQueue::Sent::all;
}

void WebhookSession::end_soon() {
  last_ = true;
  if (intake_.at_rest() && write_queue_.empty()) end();
}

void WebhookSession::end() {
  if (std::exchange(over_, true)) return;
  timer_.disarm();
  loop_.unwatch(stream_->fd(), key_);
  stream_->shut_write();
  owner_.ended(*this);
}

}  // namespace carpool::proxy
