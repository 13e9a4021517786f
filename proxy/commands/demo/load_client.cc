#include "proxy/commands/demo/load_client.h"

#include "base/repeat_interrupted.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace carpool::proxy {
namespace {

constexpr int kReadsPerEvent = 8;

void write_request(std::string& out, const LoadRequest& load_request) {
  out.assign(load_request.body == 0 ? "GET " : "POST ");
  out.append(load_request.secure ? "https://" : "http://")
      .append(load_request.host)
      .append(load_request.path)
      .append(" HTTP/1.1\r\n");
  out.append("Host: ").append(load_request.host).append("\r\nUser-Agent: carpool-demo\r\n");
  if (load_request.body != 0) out.append("Content-Length: ").append(std::to_string(load_request.body)).append("\r\n");
  out.append("\r\n").append(load_request.body, 'x');
}

}  // namespace

LoadClient::Outcome LoadClient::send(const LoadRequest& load_request) {
  if (!fd_ && !connect()) return Outcome::failed;
  busy_ = true;
  write_request(out_, load_request);
  sent_ = 0;
  head_.clear();
  reader_.expect(load_request.body == 0 ? "GET" : "POST", false);
  return write_some();
}

bool LoadClient::connect() {
  fd_.reset(::socket(proxy_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd_ && (::connect(fd_.get(), proxy_.get(), proxy_.length()) == 0 || errno == EINPROGRESS)) return true;
  fd_.reset();
  return false;
}

// Also polls an idle connection, because the other side may close it.
pollfd LoadClient::interest() const {
  const bool writes = busy_ && sent_ < out_.size();
  return {fd_.get(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0};
}

LoadClient::Outcome LoadClient::on_events(short events) {
  if (!fd_ || events == 0) return Outcome::none;
  if (busy_ && sent_ < out_.size()) {
    if (const Outcome outcome = write_some(); outcome != Outcome::none) return outcome;
  }
  return (events & ~POLLOUT) != 0 ? read_some() : Outcome::none;
}

LoadClient::Outcome LoadClient::write_some() {
  const ssize_t sent =
      repeat_interrupted([&] { return ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL); });
  if (sent >= 0) {
    sent_ += static_cast<std::size_t>(sent);
    return Outcome::none;
  }
  const bool later = errno == EAGAIN || errno == ENOTCONN;  // ENOTCONN: still connecting
  return later ? Outcome::none : end(Outcome::failed, false);
}

LoadClient::Outcome LoadClient::read_some() {
  std::array<char, 16384> bytes;
  for (int reads = 0; reads < kReadsPerEvent; ++reads) {
    const ssize_t received = repeat_interrupted([&] { return ::recv(fd_.get(), bytes.data(), bytes.size(), 0); });
    if (received < 0 && errno == EAGAIN) return Outcome::none;
    // An idle connection was closed, which affects no request. It cannot carry data, because no request waits for a
    // response.
    if (!busy_) return end(Outcome::none, false);
    if (received <= 0) return end(Outcome::failed, false);
    const Outcome outcome = feed({bytes.data(), static_cast<std::size_t>(received)});
    if (outcome != Outcome::none) return outcome;
  }
  return Outcome::none;
}

LoadClient::Outcome LoadClient::feed(std::string_view bytes) {
  for (;;) {
    const Result<http::ParseResult> fed = reader_.feed(bytes, head_, *this);
    if (!fed || fed->progress == http::Progress::upgraded) return end(Outcome::failed, false);
    bytes.remove_prefix(fed->consumed);
    if (fed->progress == http::Progress::need_more) return Outcome::none;
    if (fed->progress == http::Progress::message) {
      const bool clean = bytes.empty() && sent_ == out_.size() && head_.keep_alive;
      return end(head_.status == 200 ? Outcome::answered : Outcome::failed, clean);
    }
  }
}

LoadClient::Outcome LoadClient::end(Outcome outcome, bool keep) {
  busy_ = false;
  if (!keep) fd_.reset();
  return outcome;
}

}  // namespace carpool::proxy
