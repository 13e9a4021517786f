#include "proxy/downstream/announced_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/repeat_interrupted.h"
#include "exec/read_buffer.h"
#include "proxy/config/egress_rule.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/net/address_range.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/proxy_header.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

bool may_announce(const std::vector<std::string>& trusted, int socket) {
  const net::Address peer = net::Address::peer_of(socket);
  if (peer.family() == AF_UNIX) return true;
  if (!peer.ip()) return false;
  return std::any_of(trusted.begin(), trusted.end(), [&](const std::string& pattern) {
    const Result<config::EgressRule> rule = config::EgressRule::parse(pattern);  // validated with the configuration
    return rule && rule->matches_address(net::rule_bytes(peer), peer.port());
  });
}

AnnouncedClient::AnnouncedClient(const ExchangeContext& context, Owner& owner, Listener& listener, Fd socket)
    : OpeningClient(context, listener), owner_(owner), socket_(std::move(socket)) {}

AnnouncedClient::~AnnouncedClient() = default;

Status AnnouncedClient::start() {
  const config::Listen& settings = listener_.settings();
  if (!may_announce(settings.trusted, socket_.get())) {
    context_.stats.count(metrics::ProxyHeader::untrusted);
    return Fault{FaultKind::egress_denied, Side::client, "listen.trusted does not name the peer"};
  }
  Result<exec::WatchKey> key = context_.loop.watch(socket_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  deadline_.arm(deadline_after(context_.loop.now(), settings.header_timeout));
  return Done{};
}

// Reads the header only. The bytes after it stay in the socket, because they belong to the client that it names.
void AnnouncedClient::on_ready(exec::Ready ready) {
  if (over_) return;
  net::ProxyHeader header;
  {
    const exec::ReadBuffer buffer(context_.loop);
    const auto memory = buffer.span().first(std::min(buffer.size(), net::ProxyHeader::kMaxSize));
    const ssize_t received = net::peek(socket_.get(), memory.data(), memory.size());
    if (received < 0 && errno == EAGAIN) return;
    if (received <= 0) return refuse(metrics::ProxyHeader::missing);
    header = net::read_proxy_header(buffer.view(static_cast<std::size_t>(received)));
  }
  switch (header.state) {
    case net::ProxyHeader::State::incomplete:
      return ready.hangup ? refuse(metrics::ProxyHeader::missing) : void();
    case net::ProxyHeader::State::malformed:
      return refuse(metrics::ProxyHeader::malformed);
    case net::ProxyHeader::State::complete:
      return pass_on(header.client ? std::optional(header.client->unmapped().text()) : std::nullopt, header.size);
  }
}

void AnnouncedClient::pass_on(const std::optional<std::string>& client, std::size_t header) {
  {
    const exec::ReadBuffer buffer(context_.loop);
    const ssize_t received =
        repeat_interrupted([&] { return ::recv(socket_.get(), buffer.span().data(), header, MSG_DONTWAIT); });
    if (received != static_cast<ssize_t>(header)) return refuse(metrics::ProxyHeader::missing);
  }
  context_.stats.count(client ? metrics::ProxyHeader::named : metrics::ProxyHeader::local);
  std::string peer = client ? *client : net::Address::peer_of(socket_.get()).text();
  context_.loop.unwatch(socket_.get(), std::exchange(key_, {}));
  handed_on_ = true;
  owner_.announced(listener_, std::move(socket_), std::move(peer), draining_);
  close();
}

void AnnouncedClient::refuse(metrics::ProxyHeader why) {
  context_.stats.count(why);
  log::debug("listener", "a connection without a usable PROXY header is closed",
             {{"peer", net::Address::peer_of(socket_.get()).text()},
              {"result", metrics::kProxyHeaders.at(static_cast<std::size_t>(why))}});
  close();
}

void AnnouncedClient::on_deadline() {
  exec::assume_on_loop();
  refuse(metrics::ProxyHeader::missing);
}

void AnnouncedClient::end() {
  if (!over_) close();
}

void AnnouncedClient::close() {
  over_ = true;
  deadline_.disarm();
  if (key_.generation != 0) context_.loop.unwatch(socket_.get(), std::exchange(key_, {}));
  owner_.destroy_later(*this);
}

}  // namespace carpool::proxy
