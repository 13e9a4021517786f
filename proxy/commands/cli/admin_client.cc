#include "proxy/commands/cli/admin_client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "base/repeat_interrupted.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/address.h"

namespace carpool::proxy::cli {

namespace {
constexpr std::size_t kLongestAnswer = std::size_t{256} * 1024 * 1024;  // 65,535 connections are about 40 MiB

// Returns loopback for a wildcard bind.
net::Address reachable(const net::Address& bound) {
  if (!bound.ip() || !bound.wildcard()) return bound;
  return net::Address::literal(bound.family() == AF_INET6 ? "::1" : "127.0.0.1", bound.port()).value_or(bound);
}

std::string reason(int error) {
  if (error == EAGAIN) return "the response timed out";  // past the timeout
  return std::strerror(error);                           // NOLINT(concurrency-mt-unsafe)
}

Fault silent(const Instance& instance, const std::string& why) {
  return {FaultKind::connect_refused, Side::upstream, "no answer from " + instance.address + ": " + why};
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = repeat_interrupted([&] { return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL); });
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// A long response is chunked: its last chunk shows that it is complete.
Result<Reply> read_reply(const Instance& instance, int fd, std::string_view method) {
  http::ResponseReader reader({});
  reader.expect(method, false);
  http::ResponseHead head;
  http::BodyText body;
  const auto reply = [&] { return Reply{head.status, std::move(body.text)}; };
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return silent(instance, reason(errno));
    if (got == 0) {
      if (reader.finish()) return reply();
      return silent(instance, reader.any_byte() ? "the response is incomplete" : "the connection was closed");
    }
    http::Progress progress = http::Progress::head;
    for (std::string_view bytes(piece.data(), static_cast<std::size_t>(got)); progress == http::Progress::head;) {
      const Result<http::ParseResult> fed = reader.feed(bytes, head, body);
      if (!fed) return silent(instance, "the response is not HTTP");
      bytes.remove_prefix(fed->taken);
      progress = fed->progress;
    }
    if (progress == http::Progress::message) return reply();
    if (body.text.size() > kLongestAnswer) return silent(instance, "the response is too long");
  }
}
}  // namespace

Result<Reply> ask(const Instance& instance, std::string_view method, std::string_view target) {
  const Result<net::Address> named = net::Address::parse(instance.address);
  if (!named) return named.fault();
  const net::Address address = reachable(*named);
  const Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{instance.timeout_seconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (!socket || ::connect(socket.get(), address.get(), address.length()) != 0) {
    return silent(instance, reason(errno));
  }
  std::string question(method);
  question.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
  if (!instance.token.empty()) question.append("Authorization: Bearer ").append(instance.token).append("\r\n");
  if (!send_all(socket.get(), question + "\r\n")) return silent(instance, "the connection was closed");
  return read_reply(instance, socket.get(), method);
}

}  // namespace carpool::proxy::cli
