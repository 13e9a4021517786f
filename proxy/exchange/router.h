// Router: maps a request's target to its origin (docs/configuration.md has the table). One per loop. Routes are cached
// by the bytes received, so a known authority needs one hash look-up and no allocation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "exec/role.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/forward.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace net {
class EgressPolicy;
}

struct Route {
  OriginRuntime* origin = nullptr;
  std::string host;  // value of Host for the origin
};

class Router {
 public:
  Router(OriginRegistry& origins, const net::EgressPolicy& policy) : origins_(origins), policy_(policy) {}
  // The settings of `listener` must outlive the router. `secured`: the request arrived over TLS. Faults:
  // malformed_request, misdirected, egress_denied, origins_exhausted. The route is valid until the next call.
  Result<const Route*> route(const ListenPoint& listener, bool secured, const http::Target& target) LOOP_ONLY;
  void forget() LOOP_ONLY;  // call when the configuration changed

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Cache = std::unordered_map<std::string, Route, Hash, std::equal_to<>>;
  void write_key(const ListenPoint& listener, bool secured, const http::Target& target) LOOP_ONLY;
  Result<Route> resolve(const ListenPoint& listener, bool secured, const http::Target& target) LOOP_ONLY;
  OriginRegistry& origins_;
  const net::EgressPolicy& policy_;
  Cache cache_;      // key: form, scheme, listener, and the received authority where the route depends on it
  std::string key_;  // reused
  std::optional<Route> uncached_;  // the last route whose key is too long for the cache
};

}  // namespace carpool::proxy
