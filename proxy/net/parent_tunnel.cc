#include "proxy/net/parent_tunnel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/repeat_interrupted.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/net/plain_transport.h"

namespace carpool::proxy::net {
namespace {

constexpr std::size_t kMaxHead = std::size_t{16} * 1024;
constexpr std::size_t kMaxReason = 80;
constexpr std::uint8_t kMaxInterim = 8;
constexpr std::uint16_t kLoopDetected = 508;  // RFC 5842 §7.2

// Returns "host:port", with an IPv6 address in brackets.
std::string target_of(const pool::Origin& origin) {
  pool::Origin place = origin;
  place.scheme = pool::Scheme::tcp;  // has no default port, which authority() would leave out
  return place.authority();
}

std::string request_for(const ParentProxy& parent, const std::string& target, std::string_view via) {
  std::string out = "CONNECT " + target;
  out.append(" HTTP/1.1\r\nHost: ").append(target).append("\r\n");
  if (!parent.authorization.empty()) out.append("Proxy-Authorization: ").append(parent.authorization).append("\r\n");
  if (!via.empty()) out.append("Via: ").append(via).append("\r\n");
  out.append("\r\n");
  return out;
}

// Returns the size of the head with its empty line; 0: it is not complete. A line may end in LF alone (RFC 9112 §2.2).
std::size_t head_size(std::string_view bytes) {
  for (std::size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n', end + 1)) {
    const std::string_view rest = bytes.substr(end + 1);
    if (rest.starts_with('\n')) return end + 2;
    if (rest.starts_with("\r\n")) return end + 3;
  }
  return 0;
}

// Returns the status of "HTTP/1.x NNN reason"; 0: it is not a status line.
std::uint16_t status_of(std::string_view line, std::string_view& reason) {
  constexpr std::size_t kVersion = 9, kCode = 3;  // "HTTP/1.1 ", "200"
  if (!line.starts_with("HTTP/1.") || line.size() < kVersion + kCode || line[kVersion - 1] != ' ') return 0;
  if (line[kVersion - 2] < '0' || line[kVersion - 2] > '9') return 0;
  const std::uint16_t status = number_in<std::uint16_t>(line.substr(kVersion, kCode)).value_or(0);
  if (status < 100) return 0;
  if (line.size() > kVersion + kCode && line[kVersion + kCode] != ' ') return 0;
  reason = line.substr(std::min(line.size(), kVersion + kCode + 1));
  return status;
}

// Returns a text of another party in a form fit for a log line and a field value.
std::string shown(std::string_view reason) {
  std::string out(reason.substr(0, kMaxReason));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c >= 0x7F || c == '"' || c == '\\'; }, '?');
  return out;
}

}  // namespace

ParentTunnel::ParentTunnel(const ParentProxy& parent, const pool::Origin& origin, std::string_view via)
    : parent_(parent), target_(target_of(origin)), request_(request_for(parent, target_, via)) {}

Result<bool> ParentTunnel::step(int fd, std::span<char> memory, bool hangup) {
  if (Status sent = send(fd); !sent) return sent.take_fault();
  memory = memory.first(std::min(memory.size(), kMaxHead));
  for (;;) {
    const ssize_t received = peek(fd, memory.data(), memory.size());
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (received < 0) return refused("ended the connection after CONNECT: " + std::generic_category().message(errno));
    if (received == 0) return refused("closed the connection without an answer to CONNECT");
    const std::string_view arrived(memory.data(), static_cast<std::size_t>(received));
    Result<bool> open = read_head(fd, arrived);
    if (!open || *open) return open;
    if (head_size(arrived) != 0) continue;  // it was informational
    if (arrived.size() == memory.size()) return refused("answered CONNECT with a head of more than 16 KiB");
    if (hangup) return refused("closed the connection within its answer to CONNECT");
    return false;
  }
}

Status ParentTunnel::send(int fd) {
  while (!request_.empty()) {
    const ssize_t sent =
        repeat_interrupted([&] { return ::send(fd, request_.data(), request_.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Done{};
    if (sent < 0) return refused("ended the connection before CONNECT: " + std::generic_category().message(errno));
    request_.erase(0, static_cast<std::size_t>(sent));
  }
  return Done{};
}

// Reads exactly the response's head from the socket.
Result<bool> ParentTunnel::read_head(int fd, std::string_view arrived) {
  const std::size_t size = head_size(arrived);
  if (size == 0) return false;
  std::string_view line = arrived.substr(0, arrived.find('\n')), reason;
  if (line.ends_with('\r')) line.remove_suffix(1);
  status_ = status_of(line, reason);
  if (status_ == 0) return refused("answered CONNECT with something other than HTTP/1");
  if (status_ >= 300) return refusal(reason);
  if (status_ < 200 && (status_ == 101 || ++interim_ > kMaxInterim)) return refused("answered CONNECT with 1xx only");
  const bool open = status_ >= 200;
  const ssize_t received =
      repeat_interrupted([&] { return ::recv(fd, const_cast<char*>(arrived.data()), size, MSG_DONTWAIT); });
  if (received != static_cast<ssize_t>(size)) return refused("ended the connection after CONNECT");
  return open;
}

Fault ParentTunnel::refused(std::string why) const {
  return {FaultKind::parent_refused, Side::upstream, "the proxy " + parent_.place.label() + ' ' + std::move(why)};
}

Fault ParentTunnel::refusal(std::string_view reason) const {
  std::string why = "answered CONNECT " + target_ + " with " + std::to_string(status_);
  if (!reason.empty()) why += ' ' + shown(reason);
  if (status_ == 407) {
    why += parent_.authorization.empty() ? ": it needs upstream.proxy_credentials"
                                         : ": it does not accept upstream.proxy_credentials";
  }
  Fault fault = refused(std::move(why));
  if (status_ == kLoopDetected) fault.kind = FaultKind::loop_detected;
  return fault;
}

}  // namespace carpool::proxy::net
