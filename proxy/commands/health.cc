#include "proxy/commands/health.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/repeat_interrupted.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

namespace {
constexpr timeval kTimeout{2, 0};

// Returns loopback for a wildcard bind.
net::Address reachable(const net::Address& bound) {
  if (!bound.ip() || !bound.wildcard()) return bound;
  const auto loopback = net::Address::literal(bound.family() == AF_INET6 ? "::1" : "127.0.0.1", bound.port());
  return loopback.value_or(bound);
}

// Returns the status code, or 0 if there was no response.
int status_of_readyz(const net::Address& address) {
  const Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout);
  if (!socket || ::connect(socket.get(), address.get(), address.length()) != 0) return 0;
  constexpr std::string_view kQuestion = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (repeat_interrupted([&] { return ::send(socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL); }) < 0) {
    return 0;
  }
  char answer[64];
  const ssize_t got = repeat_interrupted([&] { return ::recv(socket.get(), answer, sizeof answer, MSG_WAITALL); });
  int status = 0;
  if (got <= 0) return 0;
  const std::string text(answer, static_cast<std::size_t>(got));
  return std::sscanf(text.c_str(), "HTTP/1.%*d %d", &status) == 1 ? status : 0;  // NOLINT(cert-err34-c)
}
}  // namespace

int run_health_command(const config::Config& config) {
  if (!config.admin.enabled) {
    std::fputs("carpool: --health needs [admin] enabled = true\n", stderr);
    return 1;
  }
  Result<net::Address> address = net::Address::parse(config.admin.address);
  if (!address) return 1;
  const int status = status_of_readyz(reachable(*address));
  if (status == 200) return 0;
  std::fprintf(stderr, "carpool: %s: %s\n", config.admin.address.c_str(), status == 0 ? "no answer" : "not ready");
  return 1;
}

}  // namespace carpool::proxy
