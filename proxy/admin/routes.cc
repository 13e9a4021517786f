#include "proxy/admin/routes.h"

#include <algorithm>
#include <array>

#include "metrics/prometheus.h"
#include "pool/origin.h"
#include "proxy/admin/index.h"
#include "proxy/admin/json.h"
#include "proxy/admin/path.h"
#include "proxy/admin/pools.h"

namespace carpool::proxy::admin {
namespace {

Answer metrics_answer(const AdminView& view) {
  const metrics::Registry* registry = view.registry();
  if (registry == nullptr) return text_answer(503, "text/plain; charset=utf-8", "Metrics not enabled\n");
  return text_answer(200, metrics::kContentType, metrics_page(view, *registry));
}

Answer pool_metrics(const AdminView& view) {
  if (view.registry() == nullptr) return text_answer(503, "text/plain; charset=utf-8", "Metrics not enabled");
  return pool_metrics_answer(view.pools());
}

Answer pools(const AdminView& view) {
  return pools_answer(view.pools());
}

Answer livez(const AdminView&) {
  return json_answer(200, {{"status", "live"}});
}

Answer readyz(const AdminView& view) {
  const std::vector<std::string> reasons = view.not_ready();
  if (reasons.empty()) return json_answer(200, {{"status", "ready"}});
  return json_answer(503, {{"status", "not ready"}, {"reasons", reasons}});
}

Answer version(const AdminView& view) {
  const metrics::BuildSample build = view.build();
  return json_answer(200, {{"version", build.version}, {"compiler", build.compiler}, {"build", build.build}});
}

Answer config(const AdminView& view) {
  return text_answer(200, "application/toml; charset=utf-8", view.config());
}

Answer later(const AdminView&) {
  return error_answer(501, "not yet available");
}

// Every fixed path; `method` GET means HEAD too.
struct Route {
  std::string_view path, method;
  Answer (*answer)(const AdminView&);
};
constexpr std::array<Route, 15> kRoutes{{{"/", "GET", index_answer},
                                         {"/metrics", "GET", metrics_answer},
                                         {"/pool/metrics", "GET", pool_metrics},
                                         {"/pools", "GET", pools},
                                         {"/livez", "GET", livez},
                                         {"/readyz", "GET", readyz},
                                         {"/version", "GET", version},
                                         {"/config", "GET", config},
                                         {"/leaks", "GET", later},
                                         {"/threads", "GET", later},
                                         {"/openapi.json", "GET", later},
                                         {"/events", "GET", later},
                                         {"/log-level", "PUT", later},
                                         {"/reload", "POST", later},
                                         {"/quit", "POST", later}}};

// What is told of one pool: /pools/{origin}/NAME.
Answer one_pool(const AdminView&, const PoolFacts& pool) {
  return pool_answer(pool);
}
Answer its_connections(const AdminView& view, const PoolFacts& pool) {
  return connections_answer(view.connections(pool.origin));
}
Answer its_later(const AdminView& view, const PoolFacts&) {
  return later(view);
}

struct PoolRoute {
  std::string_view name, method;
  Answer (*answer)(const AdminView&, const PoolFacts&);
};
constexpr std::array<PoolRoute, 10> kPoolRoutes{{{"", "GET", one_pool},
                                                 {"connections", "GET", its_connections},
                                                 {"explain", "GET", its_later},
                                                 {"advice", "GET", its_later},
                                                 {"what-if", "GET", its_later},
                                                 {"warm-up", "POST", its_later},
                                                 {"pause", "POST", its_later},
                                                 {"resume", "POST", its_later},
                                                 {"drain", "POST", its_later},
                                                 {"reconnect", "POST", its_later}}};

// The refusal of a method that a route does not take.
std::optional<Answer> wrong_method(const AdminRequest& request, std::string_view wanted) {
  if (request.method == wanted || (wanted == "GET" && request.method == "HEAD")) return std::nullopt;
  Answer answer = error_answer(405, "method not allowed");
  answer.headers.emplace_back("Allow", wanted == "GET" ? "GET, HEAD" : std::string(wanted));
  return answer;
}

Answer not_found() {
  return error_answer(404, "not found");
}

// `segments`: "pools", the origin, and what is wanted of it.
Answer pool_route(const AdminRequest& request, const std::vector<std::string>& segments, const AdminView& view) {
  const std::string wanted = segments.size() == 3 ? segments[2] : std::string();
  const auto* route =
      std::find_if(kPoolRoutes.begin(), kPoolRoutes.end(), [&](const auto& r) { return r.name == wanted; });
  if (route == kPoolRoutes.end() || segments.size() > 3) return not_found();
  if (auto refused = wrong_method(request, route->method)) return *refused;
  const Result<pool::Origin> origin = pool::parse_origin(segments[1]);
  if (!origin) return error_answer(400, "not an origin: " + origin.fault().detail);
  const std::string label = (*origin).label();
  for (const PoolFacts& pool : view.pools()) {
    if (pool.origin == label) return route->answer(view, pool);
  }
  return error_answer(404, "no pool of " + label);
}

}  // namespace

Answer handle(const AdminRequest& request, const Rules& rules, const AdminView& view) {
  const std::string_view path = path_of(request.target);
  if (auto refused = refusal(request, rules, path)) return *refused;
  const auto* route = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& r) { return r.path == path; });
  if (route != kRoutes.end()) {
    if (auto refused = wrong_method(request, route->method)) return *refused;
    return route->answer(view);
  }
  const auto segments = segments_of(path);
  if (!segments) return error_answer(400, "the path is not well encoded");
  if (segments->size() >= 2 && segments->front() == "pools") return pool_route(request, *segments, view);
  return not_found();
}

}  // namespace carpool::proxy::admin
