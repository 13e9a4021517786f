// RoutingMode: the origins that requests of one listener may reach (docs/configuration.md has the table). A listener
// with a fixed origin is a gateway: it accepts or rejects a request and takes the origin from the configuration alone.
// Every other listener is a forward proxy: the request names its origin.
#pragma once

#include <variant>

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/forward.h"

namespace carpool::proxy {

class OriginRegistry;

class Gateway {
 public:
  Gateway(pool::Origin origin, const net::Address& listener, bool secured)
      : origin_(std::move(origin)), listener_(listener), secured_(secured) {}
  // Faults: egress_denied for CONNECT; misdirected for a target that names anything but the origin, its aliases, or
  // this listener itself. The latter is accepted over HTTP/2 and in the scheme of this listener, because a client
  // without a configured proxy names it.
  Result<pool::Origin> origin_of(const http::Target& target, const OriginRegistry& origins) const;

 private:
  bool is_named_by(const pool::Origin& asked, const http::Target& target, const OriginRegistry& origins) const;
  bool is_alias(const pool::Origin& asked, bool of_plain_client, const OriginRegistry& origins) const;
  bool is_listener(const pool::Origin& asked) const;

  const pool::Origin origin_;
  const net::Address listener_;
  const bool secured_;  // the client uses TLS
};

class ForwardProxy {
 public:
  ForwardProxy(bool route_by_host, bool secured) : route_by_host_(route_by_host), secured_(secured) {}
  // Faults: malformed_request; egress_denied where route_by_host is off and Host is not an alias.
  Result<pool::Origin> origin_of(const http::Target& target, const OriginRegistry& origins) const;

 private:
  const bool route_by_host_;
  const bool secured_;  // a request in origin form has the scheme https (RFC 9112 §3.3)
};

// InsideConnect: requests inside an intercepted CONNECT reach the origin that it named, in any form of target.
class InsideConnect {
 public:
  explicit InsideConnect(const Interception& interception) : interception_(interception) {}
  // Faults: malformed_request; misdirected for any other name in the target or in the client's TLS.
  Result<pool::Origin> origin_of(const http::Target& target, const OriginRegistry& origins) const;

 private:
  const Interception& interception_;
};

using RoutingMode = std::variant<ForwardProxy, Gateway, InsideConnect>;
// `secured`: the request arrived over TLS.
Result<RoutingMode> routing_mode_of(const ListenPoint& listener, bool secured);

}  // namespace carpool::proxy
