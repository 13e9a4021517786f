// Finds the route of a request: methods, parameters, and the thread that may handle it.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pool/origin.h"
#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/find_pool.h"
#include "proxy/server/admin/path.h"
#include "proxy/server/admin/route.h"
#include "proxy/server/admin/route_kind.h"
#include "proxy/server/admin/routes.h"

namespace carpool::proxy::admin {
namespace {

Response not_found() {
  return error_response(404, "not found");
}

bool takes(std::string_view wanted, std::string_view method) {
  return method == wanted || (wanted == "GET" && method == "HEAD");
}

// Returns the route of this path that accepts the method; otherwise sets `allow` to the accepted methods.
template <class AnyRoute, class Same>
const AnyRoute* choose(std::span<const AnyRoute> all, std::string_view method, std::string& allow, Same same) {
  const AnyRoute* chosen = nullptr;
  for (const AnyRoute& route : all) {
    if (!same(route)) continue;
    allow.append(allow.empty() ? "" : ", ").append(route.method == "GET" ? "GET, HEAD" : route.method);
    if (takes(route.method, method)) chosen = &route;
  }
  return chosen;
}

Response refused_method(const std::string& allow) {
  if (allow.empty()) return not_found();
  Response response = error_response(405, "method not allowed");
  response.headers.emplace_back("Allow", allow);
  return response;
}

// Rejects unknown parameters of a command and of an analysis of one pool, because a misspelt one would do something
// other than intended. Other reads ignore unknown parameters. A known one must not have two values, of which one would
// be ignored.
template <class AnyRoute>
std::optional<Response> refused_query(const AnyRoute& route, const Call& call) {
  const bool analysis = std::is_same_v<AnyRoute, PoolRoute> && !route.options.query.empty();
  const bool strict = analysis || !call.request.reads();
  const auto all = parameters_of(call.request.target);
  const std::span<const Parameter> query = route.options.query;
  for (const auto& given : all) {
    const std::string_view name = given.first;
    const bool known =
        std::any_of(query.begin(), query.end(), [name](const Parameter& one) { return one.name == name; });
    if (known && std::count_if(all.begin(), all.end(), [name](const auto& one) { return one.first == name; }) > 1)
      return error_response(400, "parameter given more than once: `" + std::string(name) + "`");
    if (known || !strict || (name.empty() && given.second.empty())) continue;
    return error_response(400, "unknown parameter: `" + std::string(name) + "`");
  }
  return std::nullopt;
}

// `segments`: "pools", the origin, and the subresource.
Response pool_route(const Call& call, const std::vector<std::string>& segments) {
  const std::string wanted = segments.size() == 3 ? segments[2] : std::string();
  if (segments.size() > 3) return not_found();
  std::string allow;
  const PoolRoute* route =
      choose(pool_routes(), call.request.method, allow, [&](const PoolRoute& r) { return r.name == wanted; });
  if (route == nullptr) return refused_method(allow);
  if (auto refused = refused_query(*route, call)) return std::move(*refused);
  const Result<pool::Origin> origin = pool::parse_origin(segments[1]);
  if (!origin) return error_response(400, "not an origin: " + origin.fault().detail);
  if (const auto* handler = std::get_if<PoolRoute::OfOrigin>(&route->handler)) return (*handler)(call, *origin);
  const std::string label = (*origin).label();
  const auto handler = std::get<PoolRoute::OfPool>(route->handler);
  if (const std::optional<PoolInfo> pool = find_pool(call.view, label)) return handler(call, *pool);
  return error_response(404, "no pool of " + label);
}

}  // namespace

bool may_block(const AdminRequest& request) {
  constexpr std::array<std::string_view, 7> kAnsweredAtOnce{"/livez",  "/readyz",    "/version", "/threads",
                                                            "/events", "/log-level", "/overload"};
  return request.reads() &&
         std::find(kAnsweredAtOnce.begin(), kAnsweredAtOnce.end(), path_of(request.target)) == kAnsweredAtOnce.end();
}

bool needs_loop(const AdminRequest& request) {
  const std::string_view path = path_of(request.target);
  return !request.reads() || path == "/events" || path == "/log-level";
}

bool takes_long(const AdminRequest& request) {
  const std::string_view path = path_of(request.target);
  return path.ends_with("/connections") || path.ends_with("/what-if") || path.ends_with("/advice");
}

Response handle(const AdminRequest& request, const Rules& rules, const AdminView& view, AdminControl& control) {
  const Call call{request, view, control};
  const std::string_view path = path_of(request.target);
  if (auto refused = refusal(request, rules, path)) return std::move(*refused);
  if (!query_is_well_encoded(request.target)) return error_response(400, "the query is not correctly percent-encoded");
  std::string allow;
  const Route* route = choose(routes(), request.method, allow, [&](const Route& r) { return r.path == path; });
  if (route != nullptr) {
    if (auto refused = refused_query(*route, call)) return std::move(*refused);
    return route->handler(call);
  }
  if (!allow.empty()) return refused_method(allow);
  const auto segments = segments_of(path);
  if (!segments) return error_response(400, "the path is not correctly percent-encoded");
  if (segments->size() >= 2 && segments->front() == "pools") return pool_route(call, *segments);
  return not_found();
}

}  // namespace carpool::proxy::admin
