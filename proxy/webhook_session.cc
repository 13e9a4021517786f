#include "proxy/webhook_session.h"

#include <array>
#include <utility>
#include <vector>

#include "proxy/http/fault_reply.h"

namespace carpool::proxy {
namespace {

constexpr http::Limits kLimits{16 * 1024, 100, 8 * 1024};
// A review holds the object and, for an update, the one before; the API server takes none above 1.5 MiB each.
constexpr std::size_t kMaxBody = std::size_t{4} * 1024 * 1024;
constexpr Duration kPatience = std::chrono::seconds(30);

}  // namespace

WebhookSession::WebhookSession(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::Stream> stream)
    : loop_(loop),
      owner_(owner),
      stream_(std::move(stream)),
      timer_(exec::Timer::bind<&WebhookSession::on_timer>(loop, *this)),
      reader_(kLimits) {}

WebhookSession::~WebhookSession() = default;

Status WebhookSession::start() {
  Result<exec::WatchKey> key = loop_.watch(stream_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(loop_.now() + kPatience);
  return Done{};
}

void WebhookSession::on_ready(exec::Ready ready) {
  stream_->note(ready);
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
  return shaken_;
}

bool WebhookSession::read_some() {
  if (!pending_.empty()) {
    const std::string bytes = std::exchange(pending_, {});
    take(bytes);
    return true;
  }
  if (!stream_->maybe_readable()) return false;
  const std::span<char> scratch = loop_.scratch();
  const net::IoResult io = stream_->read(scratch);
  if (io.io == net::Io::ok) take({scratch.data(), io.bytes});
  failed_ = failed_ || (io.io != net::Io::ok && io.io != net::Io::would_block);
  return io.io == net::Io::ok;
}

void WebhookSession::on_body(std::string_view bytes) {
  too_long_ = too_long_ || body_.size() + bytes.size() > kMaxBody;
  if (!too_long_) body_.append(bytes);
}

// One request at a most: what follows waits until its answer is sent.
void WebhookSession::take(std::string_view bytes) {
  timer_.arm(loop_.now() + kPatience);
  for (;;) {
    const Result<http::Fed> fed = reader_.feed(bytes, head_, *this);
    if (!fed) {
      last_ = true;
      std::string reply;
      http::write_fault_reply(reply, fed.fault(), http::Version::http11, true, false, "carpool");
      return write(reply);
    }
    bytes.remove_prefix(fed->taken);
    if (fed->progress == http::Progress::need_more) return;
    if (fed->progress != http::Progress::message) continue;
    pending_.assign(bytes);
    reader_.reset();
    last_ = last_ || !head_.keep_alive;
    // What was too long has been read to its end, so that the answer arrives.
    const bool refused = std::exchange(too_long_, false);
    send(refused ? Answer{413, "application/json", R"({"error": "the review is too long"})"}
                 : owner_.answer(head_, body_));
    body_ = {};  // a session at rest keeps no megabytes
    return;
  }
}

void WebhookSession::send(const Answer& answer) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + (answer.status == 200 ? " OK" : " Refused");
  text.append("\r\nContent-Type: ").append(answer.content_type);
  text.append("\r\nContent-Length: ").append(std::to_string(answer.body.size()));
  text.append(last_ ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");
  if (head_.method != "HEAD") text += answer.body;
  write(text);
}

void WebhookSession::write(std::string_view bytes) {
  Gather out;
  out.add(bytes);
  std::vector<iovec> pieces;
  failed_ = outbox_.send(*stream_, out, pieces) == Outbox::Sent::failed;
}

bool WebhookSession::flush() {
  if (failed_) return false;
  if (outbox_.empty()) return true;
  const Outbox::Sent sent = outbox_.flush(*stream_);
  failed_ = sent == Outbox::Sent::failed;
  return sent == Outbox::Sent::all;
}

void WebhookSession::end_soon() {
  last_ = true;
  if (reader_.at_boundary() && outbox_.empty()) end();
}

void WebhookSession::end() {
  if (std::exchange(over_, true)) return;
  timer_.disarm();
  loop_.unwatch(stream_->fd(), key_);
  stream_->shut_write();
  owner_.ended(*this);
}

}  // namespace carpool::proxy
