#include "proxy/exchange/routing_mode.h"

#include <utility>

#include "proxy/net/address_range.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

// ---- a fixed origin ----

Result<pool::Origin> Gateway::origin_of(const http::Target& target, const OriginRegistry& origins) const {
  if (target.form == http::TargetForm::authority) {
    return Fault{FaultKind::egress_denied, Side::client,
                 "this listener has a fixed origin and does not accept CONNECT"};
  }
  if (!target.named) return origin_;
  const Result<pool::Origin> asked = pool::canonical_origin(target.scheme, target.authority);
  if (!asked) return asked.fault();
  if (is_named_by(*asked, target, origins)) return origin_;
  return Fault{FaultKind::misdirected, Side::client,
               asked->label() + " is neither the origin of this listener, " + origin_.label() + ", nor an alias of it"};
}

bool Gateway::is_named_by(const pool::Origin& asked, const http::Target& target, const OriginRegistry& origins) const {
  if (asked.same_place(origin_)) return true;
  // The client's :scheme is that of its connection to the listener, not the origin's.
  const bool of_plain_client =
      target.form != http::TargetForm::absolute || (secured_ && target.scheme == pool::Scheme::https);
  if (is_alias(asked, of_plain_client, origins)) return true;
  if (!of_plain_client) return false;
  const Result<pool::Origin> as_ours = pool::canonical_origin(origin_.scheme, target.authority);
  return (as_ours && as_ours->same_place(origin_)) || is_listener(asked);
}

// An alias has no port or the listener's port, because the client resolved the alias to the listener.
bool Gateway::is_alias(const pool::Origin& asked, bool of_plain_client, const OriginRegistry& origins) const {
  if (asked.scheme == pool::Scheme::https && !secured_) return false;
  const bool port_fits =
      asked.port == pool::default_port(asked.scheme) || (of_plain_client && asked.port == listener_.port());
  const config::OriginSettings* settings = port_fits ? origins.alias(asked.host) : nullptr;
  return settings != nullptr && settings->origin.same_place(origin_);
}

bool Gateway::is_listener(const pool::Origin& asked) const {
  if (asked.host == "localhost") {
    return !listener_.ip() || (asked.port == listener_.port() && (listener_.loopback() || listener_.wildcard()));
  }
  const auto literal = net::Address::literal(asked.host, asked.port);
  return literal && net::reaches(*literal, listener_);
}

// ---- any origin ----

Result<pool::Origin> ForwardProxy::origin_of(const http::Target& target, const OriginRegistry& origins) const {
  if (target.form == http::TargetForm::authority) return pool::canonical_origin(pool::Scheme::tcp, target.authority);
  const bool of_connection = secured_ && !target.named;
  Result<pool::Origin> asked =
      pool::canonical_origin(of_connection ? pool::Scheme::https : target.scheme, target.authority);
  if (!asked || (asked->scheme != pool::Scheme::http && !secured_)) return asked;
  if (asked->port == pool::default_port(asked->scheme)) {
    const config::OriginSettings* settings = origins.alias(asked->host);
    // A request for https is not forwarded to an origin without TLS.
    const bool downgrade =
        settings != nullptr && target.scheme == pool::Scheme::https && settings->origin.scheme == pool::Scheme::http;
    if (settings != nullptr && !downgrade) return settings->origin;
  }
  if (target.form != http::TargetForm::absolute && !route_by_host_) {
    return Fault{FaultKind::egress_denied, Side::client,
                 "no origin has the alias " + asked->host + ", and route_by_host is off"};
  }
  return asked;
}

// ---- inside an intercepted CONNECT ----

Result<pool::Origin> InsideConnect::origin_of(const http::Target& target, const OriginRegistry&) const {
  const std::string inside = "inside CONNECT to " + interception_.origin.label();
  if (target.form == http::TargetForm::authority) {
    return Fault{FaultKind::misdirected, Side::client, "CONNECT " + inside};
  }
  if (interception_.other_name) {
    return Fault{FaultKind::misdirected, Side::client, "the TLS server name " + inside + " is not that host"};
  }
  if (target.authority.empty()) return interception_.origin;  // HTTP/1.0 without Host
  const Result<pool::Origin> asked =
      pool::canonical_origin(target.named ? target.scheme : pool::Scheme::https, target.authority);
  if (!asked) return asked.fault();
  if (asked->same_place(interception_.origin)) return interception_.origin;
  return Fault{FaultKind::misdirected, Side::client, asked->label() + ' ' + inside};
}

Result<RoutingMode> routing_mode_of(const ListenPoint& point, bool secured) {
  if (point.interception() != nullptr) return RoutingMode(InsideConnect(*point.interception()));
  const config::Listen& settings = point.settings();
  if (settings.origin.empty()) return RoutingMode(ForwardProxy(settings.route_by_host, secured));
  Result<pool::Origin> origin = pool::parse_origin(settings.origin);
  if (!origin) return origin.take_fault();  // validated with the configuration
  return RoutingMode(Gateway(std::move(*origin), point.address(), secured));
}

}  // namespace carpool::proxy
