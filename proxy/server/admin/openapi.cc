#include "proxy/server/admin/openapi.h"

#include <string>
#include <utility>

#include "proxy/server/admin/json.h"
#include "proxy/server/admin/openapi_schemas.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::admin {
namespace {

Json reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

Json content(std::string_view content_name) {
  if (content_name.find('/') == std::string_view::npos)
    return {{"application/json", {{"schema", reference(content_name)}}}};
  if (content_name == "text/event-stream") return {{"text/event-stream", {{"schema", reference("ServerSentEvent")}}}};
  return {
      {std::string(content_name), {{"schema", {{"type", content_name == "application/json" ? "object" : "string"}}}}}};
}

Json response(std::string_view doc, Json content) {
  return {{"description", std::string(doc)}, {"content", std::move(content)}};
}

Json problem() {
  return {{"application/problem+json", {{"schema", reference("Problem")}}}};
}

Json unavailable(std::string_view instead) {
  Json json = problem();
  if (!instead.empty()) json.update(content(instead));
  return response("The request failed, or cannot be served now", std::move(json));
}

Json parameter(const Parameter& p) {
  return {{"name", std::string(p.name)},
          {"in", "query"},
          {"required", false},
          {"description", std::string(p.doc)},
          {"schema", *read_json<Json>(p.schema, {})}};
}

Json origin_parameter() {
  return {{"name", "origin"},
          {"in", "path"},
          {"required", true},
          {"description", "the origin's URI, scheme://host[:port], percent-encoded"},
          {"schema", *read_json<Json>(kOriginSchema, {})}};
}

std::string lower(std::string_view method) {
  std::string out;
  for (const char c : method) out += static_cast<char>(c | 0x20);
  return out;
}

template <class Any>
Json operation(const Any& route, bool of_pool) {
  Json json{{"summary", std::string(route.doc)}};
  Json parameters = Json::array();
  if (of_pool) parameters.push_back(origin_parameter());
  const RouteOptions& more = route.options;
  for (const Parameter& p : more.query) parameters.push_back(parameter(p));
  if (!parameters.empty()) json["parameters"] = std::move(parameters);
  if (!more.body.empty()) json["requestBody"] = {{"required", false}, {"content", content(more.body)}};
  Json& responses = json["responses"];
  responses[std::to_string(more.status)] = response("Success", content(route.content));
  responses["4XX"] = response("The request is refused; `detail` gives the reason", problem());
  responses["5XX"] = unavailable(more.unavailable);
  return json;
}

// Schemas that follow from the program are generated, so that they are not maintained twice.
Json schemas() {
  Json json = *read_json<Json>(kSchemas, {});
  json["LogLevel"] = {{"type", "string"}, {"enum", {"trace", "debug", "info", "warn", "error", "off"}}};
  json["LogModule"] = {{"type", "string"}, {"enum", log::kModules}};
  return json;
}

}  // namespace

Response openapi_response(const Call& call) {
  Json paths = Json::object();
  for (const Route& route : routes()) {
    paths[std::string(route.path)][lower(route.method)] = operation(route, false);
  }
  for (const PoolRoute& route : pool_routes()) {
    std::string path = "/pools/{origin}";
    if (!route.name.empty()) path.append("/").append(route.name);
    paths[path][lower(route.method)] = operation(route, true);
  }
  Json json{
      {"openapi", "3.0.3"},
      {"info",
       {{"title", "carpool's admin endpoint"},
        {"version", call.view.build().version},
        {"description",
         "Errors are problem details (RFC 9457), where a 503 does not list another type; `error` repeats "
         "`detail`. Except on loopback and Unix sockets, every path except /livez, /readyz and /metrics needs the "
         "bearer token. Without it, / responds with 401 and a page that asks for it."}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", schemas()}, {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", Json::array({Json::object(), {{"token", Json::array()}}})}};
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
