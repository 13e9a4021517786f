// The table of the admin endpoint's routes and their handlers.
#include <array>
#include <utility>

#include "proxy/server/admin/event_feed.h"
#include "proxy/server/admin/handlers/analysis.h"
#include "proxy/server/admin/handlers/history.h"
#include "proxy/server/admin/handlers/leaks.h"
#include "proxy/server/admin/handlers/log_level.h"
#include "proxy/server/admin/handlers/metrics.h"
#include "proxy/server/admin/handlers/pool_commands.h"
#include "proxy/server/admin/handlers/pools.h"
#include "proxy/server/admin/handlers/reload.h"
#include "proxy/server/admin/handlers/threads.h"
#include "proxy/server/admin/handlers/warm_up.h"
#include "proxy/server/admin/index.h"
#include "proxy/server/admin/json.h"
#include "proxy/server/admin/json_list.h"
#include "proxy/server/admin/openapi.h"
#include "proxy/server/admin/openapi_schemas.h"
#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {
namespace {

Response scrape(const Call& call) {
  const metrics::Registry* registry = call.view.registry();
  if (registry == nullptr) return text_response(503, "text/plain; charset=utf-8", "Metrics not enabled\n");
  return metrics_response(call.view, *registry);
}

Response pool_metrics(const Call& call) {
  if (call.view.registry() == nullptr) return text_response(503, "text/plain; charset=utf-8", "Metrics not enabled");
  return pool_metrics_response(call.view.pools());
}

Response index(const Call&) {
  return index_response();
}

Response pools(const Call& call) {
  return pools_response(call.view.pools());
}

Response origins(const Call& call) {
  return list_response("origins", call.view.origins(), [](const OriginInfo& one) {
    return Json{{"origin", one.origin}, {"alias", one.alias}, {"pool", one.pool}};
  });
}

Response livez(const Call&) {
  return json_response(200, {{"status", "live"}});
}

Response readyz(const Call& call) {
  const std::vector<std::string> reasons = call.view.not_ready();
  if (reasons.empty()) {
    Json json{{"status", "ready"}};
    if (const auto paused = call.view.paused(); !paused.empty()) json["paused"] = paused;
    if (const auto cold = call.view.warm_ups_failed(); !cold.empty()) json["warm_up_failed"] = cold;
    return json_response(200, json);
  }
  return json_response(503, {{"status", "not ready"}, {"reasons", reasons}});
}

Response version(const Call& call) {
  const metrics::BuildSample build = call.view.build();
  return json_response(200, {{"version", build.version}, {"compiler", build.compiler}, {"build", build.build}});
}

Response config(const Call& call) {
  return text_response(200, "application/toml; charset=utf-8", call.view.config());
}

Response threads(const Call& call) {
  return threads_response(call.view.threads());
}

Response overload(const Call& call) {
  const OverloadInfo info = call.view.overload();
  const auto use = [](const OverloadInfo::Use& one) {
    return Json{{"used", one.used}, {"limit", one.limit == 0 ? Json(nullptr) : Json(one.limit)}};
  };
  Json heap{{"used", info.heap_used}, {"free_bytes", info.heap_unused}, {"returned", info.memory_returned}};
  add_old_names(heap, {{"free_bytes", "unused"}});
  Json json{{"shed_level", info.sheds},
            {"stage", info.stage},
            {"memory", use(info.memory)},
            {"descriptors", use(info.descriptors)},
            {"failed_allocations", info.failed_allocations},
            {"heap", heap}};
  add_old_names(json, {{"shed_level", "sheds"}});
  return json_response(200, json);
}

Response quit(const Call& call) {
  return json_response(202, {{"status", call.control.quit() ? "draining" : "draining already"}});
}

Response leaks(const Call& call) {
  return leaks_response(call.view.leaks(), Clock::now());
}

constexpr std::array<Parameter, 2> kLogLevel{{{"level", kLevelSchema, "required unless there is a JSON body"},
                                              {"module", kModuleSchema, "one module; default: all of them"}}};

constexpr std::array<Parameter, 1> kReload{
    {{"dry_run", R"({"type": "string", "enum": ["0", "1"]})", "1: only report what would change"}}};

constexpr std::array<Parameter, 1> kHistory{
    {{"origin", kOriginSchema, "its URI, as in /pools; default: all origins together"}}};

constexpr std::array<Route, 19> kRoutes{{
    {"/", "GET", index, "the live page", "text/html"},
    {"/metrics",
     "GET",
     scrape,
     "Prometheus text 0.0.4; 503 if metrics are disabled",
     "text/plain",
     {.unavailable = "text/plain"}},
    {"/pool/metrics",
     "GET",
     pool_metrics,
     "counters per origin in the format of SimplePool, the pool of light-4j's HTTP client; 503 if metrics are disabled",
     "PoolMetrics",
     {.unavailable = "text/plain"}},
    {"/pools", "GET", pools, "every pool", "Pools"},
    {"/origins", "GET", origins, "every origin that has a pool or an [[origin]], with its aliases", "Origins"},
    {"/livez", "GET", livez, "200 while the program runs", "Health"},
    {"/readyz", "GET", readyz, "200, or 503 with the reasons", "Health", {.unavailable = "Health"}},
    {"/version", "GET", version, "what runs", "Version"},
    {"/config", "GET", config, "the configuration in force with all defaults, without secrets", "application/toml"},
    {"/history",
     "GET",
     history_response,
     "requests, times, waiting requests and connections of the last 15 minutes, a point each five seconds",
     "History",
     {.query = kHistory}},
    {"/leaks", "GET", leaks, "leases that were lost or are held too long, with their borrowers", "Leaks"},
    {"/threads", "GET", threads, "what each thread does and since when; the limits of the queue", "Threads"},
    {"/overload", "GET", overload, "use of memory and descriptors, and the load that is shed", "Overload"},
    {"/openapi.json", "GET", openapi_response, "this document", "application/json"},
    {"/events", "GET", events_response, "the data of the page, as server-sent events", "text/event-stream"},
    {"/log-level", "GET", log_level_response, "the log's levels", "LogLevels"},
    {"/log-level",
     "PUT",
     set_log_level_response,
     "sets the log's level, or one module's",
     "LogLevels",
     {.query = kLogLevel, .body = "LogLevelOrder"}},
    {"/reload",
     "POST",
     reload_route,
     "reloads the configuration; reports what changed, or why it was refused",
     "Reload",
     {.query = kReload}},
    {"/quit", "POST", quit, "drains and exits", "Status", {.status = 202}},
}};

Response one_pool(const Call& call, const PoolInfo& pool) {
  return pool_response(pool, call.view.connections(pool.origin), call.view.addresses(pool.origin));
}
Response its_connections(const Call& call, const PoolInfo& pool) {
  std::vector<ConnectionInfo> connections = call.view.connections(pool.origin);
  call.view.name_borrowers(pool.origin, connections);
  return connections_response(std::move(connections));
}
Response its_explanation(const Call& call, const PoolInfo& pool) {
  return explain_response(pool, call.view.study(pool.origin).value_or(PoolAnalysis{}));
}
Response its_advice(const Call& call, const PoolInfo& pool) {
  return advice_response(pool, call.view.study(pool.origin).value_or(PoolAnalysis{}), call.request.target);
}
Response its_what_if(const Call& call, const PoolInfo& pool) {
  return what_if_response(pool, call.view.study(pool.origin).value_or(PoolAnalysis{}), call.request.target);
}
constexpr std::string_view kSize = R"({"type": "integer", "minimum": 1, "maximum": 100000})";
// The pattern stays below the maximum duration of ten years.
constexpr std::string_view kDuration =
    R"({"type": "string", "pattern": "^([0-9]{1,11}ms|[0-9]{1,8}s|[0-9]{1,6}m|[0-9]{1,4}h)$"})";
constexpr std::array<Parameter, 7> kWhatIf{
    {{"size", kSize, "pool.size"},
     {"min_idle", R"({"type": "integer", "minimum": 0, "maximum": 100000})", "pool.min_idle, at most the size"},
     {"max_waiting", R"({"type": "integer", "minimum": 0, "maximum": 1000000})", "pool.max_waiting"},
     {"max_usage", R"({"type": "integer", "minimum": 0, "maximum": 1048575})", "pool.max_usage"},
     {"idle_timeout", kDuration, "pool.idle_timeout, as 30s"},
     {"expire_time", kDuration, "pool.expire_time, as 30m"},
     {"wait_timeout", kDuration, "pool.wait_timeout, as 3s"}}};

constexpr std::string_view kSomeTime =  // greater than zero
    R"({"type": "string", "pattern": "^([1-9][0-9]{0,9}ms|[1-9][0-9]{0,7}s|[1-9][0-9]{0,5}m|[1-9][0-9]{0,3}h)$"})";
constexpr std::array<Parameter, 1> kAdvice{{{"wait", kSomeTime, "the maximum wait of 99 of 100 borrows, as 20ms"}}};

constexpr std::array<Parameter, 1> kWarmUp{{{"size", kSize, "default 2"}}};

constexpr std::array<Parameter, 1> kPause{{{"for", kSomeTime, "how long, such as 10m; default: until `resume`"}}};

constexpr std::array<PoolRoute, 10> kPoolRoutes{{
    {"", "GET", one_pool, "one pool", "Pool"},
    {"connections", "GET", its_connections, "the connections of the pool", "Connections"},
    {"explain", "GET", its_explanation, "why connections were opened and closed", "Explanation"},
    {"advice", "GET", its_advice, "the measured load and the pool size that it requires", "Advice", {.query = kAdvice}},
    {"what-if", "GET", its_what_if, "the same load replayed on other settings", "WhatIf", {.query = kWhatIf}},
    {"warm-up",
     "POST",
     warm_up_route,
     "opens connections until `size` are open; creates the pool if there is none",
     "WarmUp",
     {.query = kWarmUp}},
    {"pause",
     "POST",
     command_route<PoolAction::pause>,
     "lends no connections; requests wait until `resume`, or until `for` has passed",
     "PoolStatus",
     {.query = kPause}},
    {"resume", "POST", command_route<PoolAction::resume>, "ends a pause or a drain", "PoolStatus"},
    {"drain",
     "POST",
     command_route<PoolAction::drain>,
     "pauses, and closes idle connections at once and borrowed ones when they are returned",
     "PoolStatus",
     {.query = kPause}},
    {"reconnect", "POST", command_route<PoolAction::reconnect>, "replaces every connection", "PoolStatus"},
}};

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

std::span<const PoolRoute> pool_routes() {
  return kPoolRoutes;
}

}  // namespace carpool::proxy::admin
