#include "proxy/admin_session.h"

#include <utility>

#include "proxy/http/fault_reply.h"

namespace carpool::proxy {

namespace {
constexpr http::Limits kLimits{16 * 1024, 100, 8 * 1024};
constexpr Duration kPatience = std::chrono::seconds(30);  // for a request to come, and for an answer to be taken

std::string_view reason(std::uint16_t status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Answer";
  }
}
}  // namespace

AdminSession::AdminSession(exec::Loop& loop, Owner& owner, const admin::Rules& rules, const admin::AdminView& view,
                           std::unique_ptr<net::Transport> transport)
    : loop_(loop),
      owner_(owner),
      rules_(rules),
      view_(view),
      transport_(std::move(transport)),
      reader_(kLimits),
      timer_(exec::Timer::bind<&AdminSession::on_timer>(loop, *this)) {}

AdminSession::~AdminSession() = default;

Status AdminSession::start() {
  Result<exec::WatchKey> key = loop_.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(loop_.now() + kPatience);
  return Done{};
}

void AdminSession::on_ready(exec::Ready ready) {
  transport_->note(ready);
  advance();
}

void AdminSession::advance() {
  while (!over_) {
    if (!flush()) return;
    if (close_when_sent_) return end();
    if (!read_some()) return;
  }
}

bool AdminSession::read_some() {
  if (!pending_.empty()) {
    const std::string bytes = std::exchange(pending_, {});
    return take(bytes);
  }
  if (!transport_->maybe_readable()) return false;
  const std::span<char> scratch = loop_.scratch();
  const net::IoResult io = transport_->read(scratch);
  if (io.io == net::Io::ok) return take({scratch.data(), io.bytes});
  if (io.io != net::Io::would_block) end();
  return false;
}

// One request at a most: what follows waits until its answer is sent.
bool AdminSession::take(std::string_view bytes) {
  for (;;) {
    const Result<http::Fed> fed = reader_.feed(bytes, head_, *this);
    if (!fed) {
      refuse(fed.fault());
      return true;
    }
    bytes.remove_prefix(fed->taken);
    if (fed->progress == http::Progress::need_more) return true;
    if (fed->progress != http::Progress::message) continue;
    pending_.assign(bytes);
    reader_.reset();
    answer();
    return true;
  }
}

void AdminSession::answer() {
  if (head_.fields.count(http::FieldName::host) > 1) {
    return refuse({FaultKind::malformed_request, Side::client, "more than one Host"});
  }
  const admin::Answer made = admin::handle(admin::make_request(head_), rules_, view_);
  Gather out;
  std::string& text = out.text();
  text.append("HTTP/1.1 ").append(std::to_string(made.status)).append(" ").append(reason(made.status)).append("\r\n");
  if (!made.content_type.empty()) text.append("Content-Type: ").append(made.content_type).append("\r\n");
  for (const auto& [name, value] : made.headers) text.append(name).append(": ").append(value).append("\r\n");
  close_when_sent_ = !head_.keep_alive;
  if (close_when_sent_) text.append("Connection: close\r\n");
  text.append("Content-Length: ").append(std::to_string(made.body.size())).append("\r\n\r\n");
  if (head_.method != "HEAD") out.add(made.body);
  head_.clear();
  std::vector<iovec> pieces;
  if (outbox_.send(*transport_, out, pieces) == Outbox::Sent::failed) return end();
  timer_.arm(loop_.now() + kPatience);
}

void AdminSession::refuse(const Fault& fault) {
  Gather out;
  http::write_fault_reply(out.text(), fault, http::Version::http11, true, false, "carpool");
  close_when_sent_ = true;
  std::vector<iovec> pieces;
  if (outbox_.send(*transport_, out, pieces) == Outbox::Sent::failed) end();
}

bool AdminSession::flush() {
  if (outbox_.empty()) return true;
  const Outbox::Sent sent = outbox_.flush(*transport_);
  if (sent == Outbox::Sent::failed) end();
  return sent == Outbox::Sent::all;
}

void AdminSession::on_timer() {
  exec::assume_on_loop();
  end();
}

void AdminSession::end() {
  if (std::exchange(over_, true)) return;
  timer_.disarm();
  loop_.unwatch(transport_->fd(), key_);
  owner_.ended(*this);
}

}  // namespace carpool::proxy
