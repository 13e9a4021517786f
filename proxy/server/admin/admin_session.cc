#include "proxy/server/admin/admin_session.h"

#include <utility>

#include "exec/read_buffer.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/h1/codec.h"
#include "proxy/http/reason_phrase.h"

namespace carpool::proxy {

namespace {
constexpr http::Limits kLimits{16 * 1024, 100, 8 * 1024};
constexpr std::size_t kMaxBody = std::size_t{16} * 1024;
constexpr Duration kPatience = std::chrono::seconds(30);  // for a request to arrive, and for a response to be read

void write_head(const admin::Response& answer, http::Framing framing, bool close, std::string& out) {
  out.append("HTTP/1.1 ").append(std::to_string(answer.status)).append(" ");
  out.append(http::reason_phrase(answer.status)).append("\r\n");
  if (!answer.content_type.empty()) out.append("Content-Type: ").append(answer.content_type).append("\r\n");
  for (const auto& [name, value] : answer.headers) out.append(name).append(": ").append(value).append("\r\n");
  if (close) out.append("Connection: close\r\n");
  if (framing == http::Framing::chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (framing == http::Framing::length) {
    out.append("Content-Length: ").append(std::to_string(answer.body.size())).append("\r\n");
  }
  out.append("\r\n");
}
}  // namespace

AdminSession::AdminSession(exec::Loop& loop, Owner& owner, const Asks& asks, std::unique_ptr<net::Transport> transport)
    : loop_(loop),
      owner_(owner),
      asks_(asks),
      transport_(std::move(transport)),
      intake_(kLimits, kMaxBody),
      timer_(exec::Timer::bind<&AdminSession::on_timer>(loop, *this)) {}

// A truncated response must not look complete: without chunks the close delimits it, so close with a reset.
AdminSession::~AdminSession() {
  if (streaming_ && !chunked_) transport_->reset_on_close();
}

Status AdminSession::start() {
  Result<exec::WatchKey> key = loop_.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(loop_.now() + kPatience);
  return Done{};
}

void AdminSession::on_ready(exec::Ready ready) {
  transport_->on_readiness(ready);
  advance();
}

void AdminSession::advance() {
  while (!over_ && !answering_) {
    if (!flush()) return;
    if (body_) return made_ == TaskResult::refused ? void() : make_step();
    if (close_when_sent_) return end();
    if (later_) return;  // the following requests wait for its response
    if (!(listening_ ? drop_some() : read_some())) return;
  }
}

bool AdminSession::read_some() {
  const exec::ReadBuffer buffer(loop_);
  switch (intake_.read(*transport_, buffer.span())) {
    case BufferedRequest::Got::nothing:
      return false;
    case BufferedRequest::Got::closed:
      end();
      return false;
    case BufferedRequest::Got::malformed:
      refuse(intake_.fault());
      return true;
    case BufferedRequest::Got::request:
      answer();
      return true;
    case BufferedRequest::Got::partial:
      break;
  }
  return true;
}

// Discards input of an /events listener: only its end matters.
bool AdminSession::drop_some() {
  intake_.forget();
  if (!transport_->maybe_readable()) return false;
  const exec::ReadBuffer buffer(loop_);
  const net::IoResult io = transport_->read(buffer.span());
  if (io.io != net::Io::ok && io.io != net::Io::would_block) end();
  return io.io == net::Io::ok;
}

admin::Response AdminSession::made_at_once() {
  if (intake_.too_long()) return admin::error_answer(413, "the body is too long");
  admin::Response answer =
      admin::handle(admin::make_request(intake_.head(), intake_.body()), rules_, asks_.view, asks_.control);
  if (answer.stream && !owner_.room_to_listen()) return busy_answer("too many clients of /events", "10");
  return answer;
}

admin::Response AdminSession::busy_answer(const char* why, const char* seconds) const {
  admin::Response answer = admin::error_answer(503, why);
  answer.headers.emplace_back("Retry-After", seconds);
  return answer;
}

void AdminSession::answer() {
  if (intake_.head().fields.count(http::FieldName::host) > 1) {
    return refuse({FaultKind::malformed_request, Side::client, "more than one Host"});
  }
  rules_ = asks_.rules;
  if (intake_.too_long() || !admin::may_block(admin::make_request(intake_.head(), intake_.body()))) {
    answer_ = made_at_once();
    return respond();
  }
  if (!owner_.room_to_work()) {
    answer_ = busy_answer("too many responses are being produced", "1");
    return respond();
  }
  owner_.works(*this);
  answering_ = true;
  timer_.disarm();
  owner_.submit(exec::lend(making_));
}

void AdminSession::respond() {
  later_ = std::move(answer_.later);
  if (later_) return poll_pending();
  send(std::exchange(answer_, {}));
}

// Polls the pending response periodically until it is known.
void AdminSession::poll_pending() {
  constexpr Duration kNowAndThen = std::chrono::milliseconds(5);
  std::optional<admin::Response> answer = later_->poll_pending();
  if (!answer) return timer_.arm(loop_.now() + kNowAndThen);
  later_.reset();
  send(*answer);
}

void AdminSession::send(const admin::Response& answer) {
  const http::RequestHead& head = intake_.head();
  const bool body_wanted = head.method != "HEAD";
  http::Framing framing = answer.stream ? http::Framing::until_close : http::Framing::length;
  if (body_) framing = head.version == http::Version::http11 ? http::Framing::chunked : http::Framing::until_close;
  const bool close = !head.keep_alive || framing == http::Framing::until_close;
  WriteBatch out;
  write_head(answer, framing, close, out.text());
  const bool subscribed = answer.stream && body_wanted;
  close_when_sent_ = close && !subscribed;
  chunked_ = framing == http::Framing::chunked;
  patience_ = loop_.now() + kPatience;
  intake_.done();
  const std::string first = body_ ? body_->take() : std::string();
  if (!body_wanted) {
    body_.reset();
  } else if (body_) {
    streaming_ = true;
    add_step(out, first);
  } else {
    out.add(answer.body);
  }
  send_out(out);
  if (over_) return;
  subscribed ? owner_.subscribed(*this) : owner_.waits(*this);
}

void AdminSession::send_step() {
  const std::string step = body_->take();
  WriteBatch out;
  add_step(out, step);
  send_out(out);
  if (!over_) owner_.waits(*this);
}

// Only the chunk framing is copied to the batch; the step itself is sent from its own memory.
void AdminSession::add_step(WriteBatch& out, const std::string& step) {
  if (chunked_ && !step.empty()) http::write_chunk_head(out.text(), step.size());
  out.add(step);
  if (chunked_ && !step.empty()) out.text().append("\r\n");
  if (!body_->complete()) return;
  if (chunked_) http::write_last_chunk(out.text(), {});
  body_.reset();
  streaming_ = false;
}

// A response in steps has one timeout for all of them, so that no client holds its data, or a gzip context, for longer.
void AdminSession::send_out(WriteBatch& out) {
  if (write_queue_.send(*transport_, out) == WriteQueue::Sent::failed) return end();
  timer_.arm(body_ ? patience_ : loop_.now() + kPatience);
}

void AdminSession::send_event(const std::string& whole, const std::string& changes) {
  listening_ = true;
  if (!flush()) {
    up_to_date_ = false;
    return;
  }
  WriteBatch out;
  out.add(up_to_date_ ? changes : whole);
  const WriteQueue::Sent sent = write_queue_.send(*transport_, out);
  if (sent == WriteQueue::Sent::failed) return end();
  up_to_date_ = true;
  timer_.arm(loop_.now() + kPatience);  // a client that reads nothing until then is closed
}

// Replies with an error and closes: after malformed input the beginning of a next request is unknown.
void AdminSession::refuse(const Fault& fault) {
  const http::FaultStatus told = http::fault_status(fault.kind);
  const admin::Response answer =
      admin::error_answer(told.status, fault.detail.empty() ? http::fault_name(fault.kind) : fault.detail);
  close_when_sent_ = true;
  WriteBatch out;
  write_head(answer, http::Framing::length, true, out.text());
  out.add(answer.body);
  if (write_queue_.send(*transport_, out) == WriteQueue::Sent::failed) end();
}

bool AdminSession::flush() {
  if (write_queue_.empty()) return true;
  const WriteQueue::Sent sent = write_queue_.flush(*transport_);
  if (sent == WriteQueue::Sent::failed) end();
  return sent == WriteQueue::Sent::all;
}

void AdminSession::on_timer() {
  exec::assume_on_loop();
  if (later_) {
    poll_pending();
    return later_ ? void() : advance();
  }
  if (!answering_ && made_ == TaskResult::refused && loop_.now() < patience_) return make_step();
  end();
}

void AdminSession::end() {
  if (std::exchange(over_, true)) return;
  timer_.disarm();
  loop_.unwatch(transport_->fd(), key_);
  if (!answering_) owner_.ended(*this);  // otherwise when the response is ready
}

}  // namespace carpool::proxy
