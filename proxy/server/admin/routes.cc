// The table of the admin endpoint's routes and their handlers.
#include <array>
#include <utility>

#include "proxy/server/admin/event_feed.h"
#include "proxy/server/admin/failing.h"
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
  return pool_metrics_response(call.view.counted());
}

Response index(const Call&) {
  return index_response();
}

Response pools(const Call& call) {
  std::vector<PoolInfo> pools = call.view.pools();
  find_failing(call.view, pools);
  return pools_response(std::move(pools));
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
  return text_response(200, "application/json", call.view.config(ConfigFormat::json));
}

Response config_as_toml(const Call& call) {
  return text_response(200, "application/toml; charset=utf-8", call.view.config(ConfigFormat::toml));
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
  Json json{{"shed_level", info.shed_level},
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

constexpr std::array<Parameter, 2> kLogLevel{
    {{"level", kLevelSchema, "the level; required unless the body has it"},
     {"module", kModuleSchema, "the module whose level is set; default: all modules"}}};

constexpr std::array<Parameter, 1> kReload{
    {{"dry_run", R"({"type": "string", "enum": ["0", "1"]})", "1: only reports what would change"}}};

constexpr std::array<Parameter, 1> kHistory{
    {{"origin", kOriginSchema, "the origin's URI, as in /pools; default: all origins together"}}};

constexpr std::array<Route, 20> kRoutes{{
    {"/", "GET", index, "The live page", "text/html"},
    {"/metrics",
     "GET",
     scrape,
     "All metrics in the Prometheus text format 0.0.4; 503 if metrics are disabled",
     "text/plain",
     {.unavailable = "text/plain"}},
    {"/pool/metrics",
     "GET",
     pool_metrics,
     "The counters of each origin in the format of SimplePool, the connection pool of light-4j's HTTP client; 503 if "
     "metrics are disabled",
     "PoolMetrics",
     {.unavailable = "text/plain"}},
    {"/pools", "GET", pools, "All pools", "Pools"},
    {"/origins", "GET", origins, "All origins that have a pool or an [[origin]] section, with their aliases",
     "Origins"},
    {"/livez", "GET", livez, "Liveness: 200 while the process runs", "Health"},
    {"/readyz", "GET", readyz, "Readiness: 200, or 503 with the reasons", "Health", {.unavailable = "Health"}},
    {"/version", "GET", version, "The version, compiler and build type of the running program", "Version"},
    {"/config", "GET", config, "The effective configuration with all defaults, without secrets", "application/json"},
    {"/config.toml", "GET", config_as_toml, "The same configuration as TOML", "application/toml"},
    {"/history",
     "GET",
     history_response,
     "Request rates, response times, waiting requests and connections of the last 15 minutes, one point every 5 s",
     "History",
     {.query = kHistory}},
    {"/leaks", "GET", leaks,
     "Leases that were lost or held too long, with their borrowers, and connections that are in no pool", "Leaks"},
    {"/threads", "GET", threads, "What each thread does and since when; the limits of the thread pool and its queue",
     "Threads"},
    {"/overload", "GET", overload, "The use of memory and file descriptors, and the load that is shed", "Overload"},
    {"/openapi.json", "GET", openapi_response, "This document", "application/json"},
    {"/events", "GET", events_response, "The data of the live page as server-sent events", "text/event-stream"},
    {"/log-level", "GET", log_level_response, "The log level, and those of the modules that have their own",
     "LogLevels"},
    {"/log-level",
     "PUT",
     set_log_level_response,
     "Sets the log level of one module or of all modules; a query parameter overrides the same member of the body",
     "LogLevels",
     {.query = kLogLevel, .body = "LogLevelRequest"}},
    {"/reload",
     "POST",
     reload_route,
     "Reloads the configuration and returns the changes; 400 with all errors if it is refused, 409 during another "
     "reload",
     "Reload",
     {.query = kReload}},
    {"/quit", "POST", quit, "Drains and exits", "Status", {.status = 202}},
}};

Response one_pool(const Call& call, const PoolInfo& pool) {
  PoolInfo known = pool;
  find_failing(call.view, known);
  return pool_response(known, call.view.connections(pool.origin), call.view.addresses(pool.origin));
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
constexpr std::string_view kSomeTime =  // greater than zero
    R"({"type": "string", "pattern": "^([1-9][0-9]{0,9}ms|[1-9][0-9]{0,7}s|[1-9][0-9]{0,5}m|[1-9][0-9]{0,3}h)$"})";
constexpr std::array<Parameter, 7> kWhatIf{
    {{"size", kSize, "the simulated pool.size"},
     {"min_idle", R"({"type": "integer", "minimum": 0, "maximum": 100000})",
      "the simulated pool.min_idle, at most the size"},
     {"max_waiting", R"({"type": "integer", "minimum": 0, "maximum": 1000000})", "the simulated pool.max_waiting"},
     {"max_usage", R"({"type": "integer", "minimum": 0, "maximum": 1048575})", "the simulated pool.max_usage"},
     {"idle_timeout", kDuration, "the simulated pool.idle_timeout, such as 30s"},
     {"expire_time", kDuration, "the simulated pool.expire_time, such as 30m"},
     {"wait_timeout", kSomeTime, "the simulated pool.wait_timeout, such as 3s"}}};

constexpr std::array<Parameter, 1> kAdvice{
    {{"wait", kSomeTime,
      "the maximum wait of 99 of 100 borrows, such as 20ms; default: a tenth of the mean hold time, at least 1ms"}}};

constexpr std::array<Parameter, 1> kWarmUp{{{"size", kSize, "the number of connections; default: 2"}}};

constexpr std::array<Parameter, 1> kPause{{{"for", kSomeTime, "the duration, such as 10m; default: until `resume`"}}};

constexpr std::array<PoolRoute, 10> kPoolRoutes{{
    {"", "GET", one_pool, "One pool", "Pool"},
    {"connections", "GET", its_connections, "The connections of the pool", "Connections"},
    {"explain", "GET", its_explanation, "Why connections were opened and closed", "Explanation"},
    {"advice",
     "GET",
     its_advice,
     "The measured load, and the pool size that it requires",
     "Advice",
     {.query = kAdvice}},
    {"what-if",
     "GET",
     its_what_if,
     "A simulation of the measured load with other settings; those without a parameter keep their values",
     "WhatIf",
     {.query = kWhatIf}},
    {"warm-up",
     "POST",
     warm_up_route,
     "Opens connections until `size` are open, or the pool's size (`capped_at`) if that is less; creates the pool if "
     "there is none; 502 with the first failure",
     "WarmUp",
     {.query = kWarmUp}},
    {"pause",
     "POST",
     command_route<PoolAction::pause>,
     "Stops lending connections until `resume`, or until `for` has passed; requests wait, within pool.max_waiting and "
     "pool.wait_timeout",
     "PoolStatus",
     {.query = kPause}},
    {"resume", "POST", command_route<PoolAction::resume>, "Ends a pause or a drain", "PoolStatus"},
    {"drain",
     "POST",
     command_route<PoolAction::drain>,
     "Pauses the pool, and closes idle connections at once and borrowed ones when they are returned",
     "PoolStatus",
     {.query = kPause}},
    {"reconnect", "POST", command_route<PoolAction::reconnect>,
     "Replaces every connection but tunnels: idle ones as soon as their successors are open, borrowed ones when they "
     "are returned",
     "PoolStatus"},
}};

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

std::span<const PoolRoute> pool_routes() {
  return kPoolRoutes;
}

}  // namespace carpool::proxy::admin
