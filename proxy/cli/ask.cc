#include "proxy/cli/ask.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/fd.h"
#include "proxy/net/address.h"

namespace carpool::proxy::cli {

namespace {
// A wildcard bind is reached on loopback.
net::Address reachable(const net::Address& bound) {
  if (!bound.ip() || !bound.wildcard()) return bound;
  return net::Address::literal(bound.family() == AF_INET6 ? "::1" : "127.0.0.1", bound.port()).value_or(bound);
}

std::string reason(int error) {
  if (error == EAGAIN) return "it takes its time";  // past the bound
  return std::strerror(error);                      // NOLINT(concurrency-mt-unsafe)
}

Fault silent(const Instance& instance, const std::string& why) {
  return {FaultKind::connect_refused, Side::upstream, "no answer from " + instance.address + ": " + why};
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<Reply> parse(const Instance& instance, const std::string& answer) {
  const std::size_t head = answer.find("\r\n\r\n");
  Reply reply;
  const std::size_t space = answer.find(' ');
  if (!answer.starts_with("HTTP/1.") || head == std::string::npos || space == std::string::npos) {
    return silent(instance, "it does not speak HTTP");
  }
  const char* const code = answer.data() + space + 1;
  if (std::from_chars(code, answer.data() + head, reply.status).ec != std::errc()) {
    return silent(instance, "it does not speak HTTP");
  }
  reply.body = answer.substr(head + 4);
  return reply;
}
}  // namespace

Result<Reply> ask(const Instance& instance, std::string_view method, std::string_view target) {
  const Result<net::Address> named = net::Address::parse(instance.address);
  if (!named) return named.fault();
  const net::Address address = reachable(*named);
  const Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{instance.patience_seconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (!socket || ::connect(socket.get(), address.get(), address.length()) != 0) {
    return silent(instance, reason(errno));
  }
  std::string question(method);
  question.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
  if (!instance.token.empty()) question.append("Authorization: Bearer ").append(instance.token).append("\r\n");
  if (!send_all(socket.get(), question + "\r\n")) return silent(instance, "it hung up");
  std::string answer;
  std::array<char, 16384> piece;
  for (ssize_t got = 0; (got = ::recv(socket.get(), piece.data(), piece.size(), 0)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return silent(instance, reason(errno));
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  return parse(instance, answer);
}

}  // namespace carpool::proxy::cli
