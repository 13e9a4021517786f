#include "proxy/commands/cli/admin_stream.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/contents.h"
#include "base/fd.h"
#include "base/repeat_interrupted.h"
#include "proxy/net/address.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::cli {

namespace {
constexpr std::size_t kMaxCertificates = std::size_t{1} << 20;  // maximum size of the file

Fault no_response(const std::string& why) {
  return {FaultKind::connect_refused, Side::upstream, why};
}

// `what`: names the wait that the error ended.
std::string reason(int error, std::string_view what) {
  if (error == EAGAIN || error == EINPROGRESS) return std::string(what) + " timed out";  // the socket's timeout passed
  return std::strerror(error);  // NOLINT(concurrency-mt-unsafe)
}

// Returns loopback for a wildcard bind.
net::Address reachable(const net::Address& bound) {
  if (!bound.ip() || !bound.wildcard()) return bound;
  return net::Address::literal(bound.family() == AF_INET6 ? "::1" : "127.0.0.1", bound.port()).value_or(bound);
}

std::string host_of(const std::string& host_port) {
  const std::string host = host_port.substr(0, host_port.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

// Resolves a name with the system's resolver.
Result<std::vector<net::Address>> addresses_of(const std::string& host_port) {
  const Result<net::Address> address = net::Address::parse(host_port);
  if (address) return std::vector{reachable(*address)};
  const std::size_t colon = host_port.rfind(':');
  if (host_port.starts_with("unix:") || colon == std::string::npos || colon == 0) return address.fault();
  if (number_in<std::uint16_t>(std::string_view(host_port).substr(colon + 1)).value_or(0) == 0) return address.fault();
  struct Free {
    void operator()(addrinfo* all) const { ::freeaddrinfo(all); }
  };
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host_of(host_port).c_str(), host_port.c_str() + colon + 1, &wanted, &found);
  if (failed != 0) return no_response(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, Free> all(found);
  std::vector<net::Address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    addresses.emplace_back(one->ai_addr, one->ai_addrlen);
  }
  return addresses;
}

// Tries each address. A name such as localhost also has an IPv6 address, on which the instance may not listen.
Result<Fd> connected(const std::vector<net::Address>& addresses, int timeout_seconds) {
  const timeval limit{timeout_seconds, 0};
  int error = EADDRNOTAVAIL;
  for (const net::Address& address : addresses) {
    Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // timeout of connect()
    if (socket && ::connect(socket.get(), address.get(), address.length()) == 0) return socket;
    error = errno;
  }
  return no_response(reason(error, "the connection"));
}
}  // namespace

Result<AdminStream> AdminStream::open(const std::string& host_port, const std::optional<Trust>& trust,
                                      int timeout_seconds) {
  const Result<std::vector<net::Address>> addresses = addresses_of(host_port);
  if (!addresses) return addresses.fault();
  Result<Fd> socket = connected(*addresses, timeout_seconds);
  if (!socket) return socket.take_fault();
  net::prepare_socket(socket->get());
  if (!trust) return AdminStream(net::make_plain(std::move(*socket)), timeout_seconds);
  AdminStream stream(nullptr, timeout_seconds);
  const Result<net::Address> bound = net::Address::parse(host_port);
  const bool wildcard = bound && bound->ip() && bound->wildcard();
  const std::string host = wildcard ? addresses->front().host() : host_of(host_port);
  const std::uint16_t port = addresses->front().port();
  if (Status begun = stream.begin_tls(std::move(*socket), host, port, *trust); !begun) return begun.take_fault();
  return stream;
}

Status AdminStream::begin_tls(Fd socket, const std::string& host, std::uint16_t port, const Trust& trust) {
  tls::ClientSettings settings;
  settings.ca_file = trust.ca_file;
  settings.cert_file = trust.cert_file;
  settings.key_file = trust.key_file;
  settings.verify = !trust.any && trust.certificate.empty();
  settings.alpn = {"http/1.1"};
  Result<std::unique_ptr<tls::ClientContext>> context = tls::ClientContext::make(settings);
  if (!context) return context.take_fault();
  context_ = std::move(*context);
  auto transport = tls::TlsTransport::client(*context_, std::move(socket), host, port);
  tls::TlsTransport& stream = *transport;
  transport_ = std::move(transport);
  for (;;) {
    const Result<bool> done = stream.handshake();
    if (!done) return done.fault();
    if (*done) break;
    if (Status waited = wait(false, "the TLS handshake"); !waited) return waited;
  }
  if (trust.certificate.empty()) return Done{};
  const Result<std::string> expected = contents(trust.certificate, kMaxCertificates);
  if (!expected) return no_response("cannot read " + trust.certificate + ": " + expected.fault().detail);
  if (stream.peer_shows(*expected)) return Done{};
  return no_response("its certificate is not the one in " + trust.certificate);
}

Status AdminStream::wait(bool to_write, std::string_view what) {
  pollfd socket{transport_->fd(), static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
  constexpr int kMilliseconds = 1000;
  const int ready = repeat_interrupted([&] { return ::poll(&socket, 1, timeout_seconds_ * kMilliseconds); });
  if (ready == 0) return no_response(reason(EAGAIN, what));
  if (ready < 0) return no_response(reason(errno, what));
  const bool hangup = (socket.revents & (POLLHUP | POLLERR)) != 0;
  transport_->on_readiness({(socket.revents & POLLIN) != 0, (socket.revents & POLLOUT) != 0, hangup});
  return Done{};
}

Status AdminStream::send(std::string_view text) {
  while (!text.empty()) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    const net::IoResult sent = transport_->write({&piece, 1});
    if (sent.io == net::Io::ok) {
      text.remove_prefix(sent.bytes);
    } else if (sent.io != net::Io::would_block) {
      return no_response("the connection was closed");
    } else if (Status waited = wait(true, "the request"); !waited) {
      return waited;
    }
  }
  return Done{};
}

Result<std::size_t> AdminStream::receive(std::span<char> into) {
  for (;;) {
    const net::IoResult received = transport_->read(into);
    if (received.io == net::Io::ok) return received.bytes;
    if (received.io == net::Io::eof) return std::size_t{0};
    if (received.io != net::Io::would_block)
      return no_response(received.error != 0 ? reason(received.error, "the response") : std::string(received.detail));
    if (Status waited = wait(false, "the response"); !waited) return waited.take_fault();
  }
}

}  // namespace carpool::proxy::cli
