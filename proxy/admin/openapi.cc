#include "proxy/admin/openapi.h"

#include <string>

#include "pool/snapshot.h"
#include "proxy/admin/json.h"

namespace carpool::proxy::admin {
namespace {

// What the answers look like. Every name that a Route's `answers` uses stands here.
constexpr const char* kSchemas = R"({
  "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
  "Status": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
  "Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"},
    "reasons": {"type": "array", "items": {"type": "string"}},
    "warm_up_failed": {"type": "array", "items": {"type": "string"}}}},
  "Version": {"type": "object", "required": ["version", "compiler", "build"], "properties": {
    "version": {"type": "string"}, "compiler": {"type": "string"}, "build": {"type": "string"}}},
  "LogLevels": {"type": "object", "required": ["level", "modules"], "properties": {"level": {"type": "string"},
    "modules": {"type": "object", "additionalProperties": {"type": "string"}}}},
  "Threads": {"type": "object",
    "required": ["strategy", "min", "max", "leases", "reserve", "tasks", "queue", "started", "left", "start_failures",
                 "failed_jobs", "threads", "background"],
    "properties": {
      "strategy": {"type": "string"}, "min": {"type": "integer"}, "max": {"type": "integer"},
      "leases": {"type": "integer"}, "reserve": {"$ref": "#/components/schemas/Counts"},
      "tasks": {"$ref": "#/components/schemas/Counts"}, "queue": {"type": "object"}, "started": {"type": "integer"},
      "left": {"type": "integer"}, "start_failures": {"type": "integer"}, "failed_jobs": {"type": "integer"},
      "threads": {"type": "array", "items": {"type": "object", "required": ["number", "state", "doing", "seconds"]}},
      "background": {"type": "object"}}},
  "Reload": {"type": "object", "required": ["status", "changes"], "properties": {"status": {"type": "string"},
    "changes": {"type": "array", "items": {"type": "object", "required": ["key", "from", "to", "applies"], "properties": {
      "key": {"type": "string"}, "from": {"type": "string", "nullable": true}, "to": {"type": "string", "nullable": true},
      "applies": {"type": "string"}}}},
    "renewed": {"type": "array", "items": {"type": "string"}},
    "warnings": {"type": "array", "items": {"type": "string"}}}},
  "Use": {"type": "object", "required": ["used", "limit"], "properties": {"used": {"type": "integer", "minimum": 0},
    "limit": {"type": "integer", "nullable": true}}},
  "Overload": {"type": "object", "required": ["sheds", "stage", "memory", "descriptors"], "properties": {
    "sheds": {"type": "string", "enum": ["nothing", "keep_alive", "new_clients", "idle"]}, "stage": {"type": "integer"},
    "memory": {"$ref": "#/components/schemas/Use"}, "descriptors": {"$ref": "#/components/schemas/Use"}}},
  "Counts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
  "PoolMetrics": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Counts"}},
  "Pool": {"type": "object",
    "required": ["origin", "active", "borrowable", "borrowed", "connecting", "waiting", "max_wait_seconds", "size",
                 "peak", "borrows", "restores", "created", "leaks", "saved", "rate_limited", "connections", "opened", "closed", "failures",
                 "learned_idle_timeout_seconds", "ejected_addresses"],
    "properties": {
      "origin": {"type": "string"},
      "active": {"type": "integer", "minimum": 0}, "borrowable": {"type": "integer", "minimum": 0},
      "borrowed": {"type": "integer", "minimum": 0}, "connecting": {"type": "integer", "minimum": 0},
      "waiting": {"type": "integer", "minimum": 0}, "max_wait_seconds": {"type": "number", "minimum": 0},
      "size": {"type": "integer", "minimum": 0}, "peak": {"type": "integer", "minimum": 0},
      "borrows": {"type": "integer", "minimum": 0}, "restores": {"type": "integer", "minimum": 0},
      "saved": {"type": "object", "required": ["dials", "seconds", "cpu_seconds"], "properties": {
        "dials": {"type": "integer", "minimum": 0}, "seconds": {"type": "number"}, "cpu_seconds": {"type": "number"}}},
      "rate_limited": {"type": "object", "required": ["requests", "connections"], "properties": {
        "requests": {"type": "integer", "minimum": 0}, "connections": {"type": "integer", "minimum": 0}}},
      "created": {"type": "integer", "minimum": 0}, "leaks": {"type": "integer", "minimum": 0},
      "connections": {"$ref": "#/components/schemas/Counts"}, "opened": {"$ref": "#/components/schemas/Counts"},
      "closed": {"$ref": "#/components/schemas/Counts"}, "failures": {"$ref": "#/components/schemas/Counts"},
      "learned_idle_timeout_seconds": {"type": "number", "nullable": true},
      "ejected_addresses": {"type": "integer", "minimum": 0},
      "addresses": {"type": "array", "items": {"type": "object",
        "required": ["address", "state", "open", "failures", "ejections"], "properties": {
          "address": {"type": "string"}, "state": {"type": "string", "enum": ["usable", "ejected", "gone"]},
          "open": {"type": "integer", "minimum": 0}, "failures": {"type": "integer", "minimum": 0},
          "ejections": {"type": "integer", "minimum": 0}}}},
      "classes": {"type": "array", "items": {"type": "object", "required": ["name", "waiting", "leases", "share"],
        "properties": {"name": {"type": "string"}, "waiting": {"type": "integer", "minimum": 0},
          "leases": {"type": "integer", "minimum": 0}, "share": {"type": "integer", "minimum": 0}}}}}},
  "Pools": {"type": "object", "required": ["pools"], "properties": {
    "pools": {"type": "array", "items": {"$ref": "#/components/schemas/Pool"}}}},
  "Connection": {"type": "object",
    "required": ["id", "state", "opened", "age_seconds", "idle_seconds", "uses", "streams", "protocol", "local",
                 "peer", "tls_version", "cipher", "loop", "borrower"],
    "properties": {
      "id": {"type": "integer"}, "state": {"type": "string"}, "opened": {"type": "string"},
      "age_seconds": {"type": "number"}, "idle_seconds": {"type": "number"}, "uses": {"type": "integer"}, "streams": {"type": "integer"},
      "protocol": {"type": "string", "nullable": true}, "local": {"type": "string", "nullable": true},
      "peer": {"type": "string", "nullable": true}, "tls_version": {"type": "string", "nullable": true},
      "cipher": {"type": "string", "nullable": true}, "loop": {"type": "integer"},
      "borrower": {"type": "string", "nullable": true}}},
  "WarmUp": {"type": "object", "required": ["made", "failure"], "properties": {"made": {"type": "integer", "minimum": 0},
    "failure": {"type": "string", "nullable": true}}},
  "Sentences": {"type": "array", "items": {"type": "string"}},
  "Explanation": {"type": "object", "required": ["origin", "sentences"], "properties": {"origin": {"type": "string"},
    "sentences": {"$ref": "#/components/schemas/Sentences"}}},
  "Advice": {"type": "object", "required": ["origin", "method", "advice"], "properties": {"origin": {"type": "string"},
    "method": {"type": "string"}, "why_not": {"type": "string"},
    "advice": {"type": "object", "nullable": true, "required": ["arrivals_per_second", "hold_seconds", "wait_seconds",
      "offered_load", "present", "recommended", "sentences"]}}},
  "Replayed": {"type": "object", "required": ["settings", "outcome"], "properties": {"settings": {"type": "object"},
    "outcome": {"type": "object", "required": ["served", "refused", "timed_out", "handshakes", "peak", "wait_seconds"]}}},
  "WhatIf": {"type": "object", "required": ["origin", "borrows", "present", "what_if", "handshakes_saved", "sentences"],
    "properties": {"present": {"$ref": "#/components/schemas/Replayed"}, "what_if": {"$ref": "#/components/schemas/Replayed"},
      "handshakes_saved": {"type": "integer"}, "sentences": {"$ref": "#/components/schemas/Sentences"}}},
  "Leak": {"type": "object", "required": ["id", "kind", "origin", "connection", "found_seconds_ago", "age_seconds",
      "returned", "action", "borrower"], "properties": {"id": {"type": "integer"},
      "kind": {"type": "string", "enum": ["held", "lost"]}, "origin": {"type": "string", "nullable": true},
      "connection": {"type": "integer"}, "found_seconds_ago": {"type": "number"}, "age_seconds": {"type": "number"},
      "returned": {"type": "boolean"}, "action": {"type": "string", "enum": ["report", "discard"]},
      "borrower": {"type": "object", "required": ["request", "phase", "client", "pid", "uid", "trace_id", "bytes_in",
        "bytes_out"]}}},
  "Leaks": {"type": "object", "required": ["leaks"], "properties": {
    "leaks": {"type": "array", "items": {"$ref": "#/components/schemas/Leak"}}}},
  "Connections": {"type": "object", "required": ["connections"], "properties": {
    "connections": {"type": "array", "items": {"$ref": "#/components/schemas/Connection"}}}}
})";

Json reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

Json content(std::string_view answers) {
  if (answers.find('/') == std::string_view::npos) return {{"application/json", {{"schema", reference(answers)}}}};
  return {{std::string(answers), {{"schema", {{"type", answers == "application/json" ? "object" : "string"}}}}}};
}

Json error(const char* why) {
  return {{"description", why}, {"content", {{"application/json", {{"schema", reference("Error")}}}}}};
}

Json parameter(const Parameter& p) {
  return {{"name", std::string(p.name)},
          {"in", "query"},
          {"required", p.required},
          {"description", std::string(p.doc)},
          {"schema", {{"type", std::string(p.type)}}}};
}

Json origin_parameter() {
  return {{"name", "origin"},
          {"in", "path"},
          {"required", true},
          {"description", "scheme://host[:port], percent-encoded"},
          {"schema", {{"type", "string"}}}};
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
  for (const Parameter& p : route.query) parameters.push_back(parameter(p));
  if (!parameters.empty()) json["parameters"] = std::move(parameters);
  Json& responses = json["responses"];
  responses["2XX"] = {{"description", std::string(route.doc)}, {"content", content(route.answers)}};
  responses["4XX"] = error("what was asked is not possible; `error` says why");
  responses["5XX"] = {{"description", "not available now"}};
  return json;
}

}  // namespace

Answer openapi_answer(const Call& call) {
  Json paths = Json::object();
  for (const Route& route : routes()) {
    paths[std::string(route.path)][lower(route.method)] = operation(route, false);
  }
  for (const PoolRoute& route : pool_routes()) {
    std::string path = "/pools/{origin}";
    if (!route.name.empty()) path.append("/").append(route.name);
    paths[path][lower(route.method)] = operation(route, true);
  }
  Json json{{"openapi", "3.0.3"},
            {"info",
             {{"title", "carpool's admin endpoint"},
              {"version", call.view.build().version},
              {"description",
               "Errors are {\"error\": …}. Elsewhere than on loopback and Unix sockets every path but "
               "/livez, /readyz and /metrics needs the bearer token."}}},
            {"paths", std::move(paths)},
            {"components",
             {{"schemas", Json::parse(kSchemas)},
              {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
            {"security", Json::array({Json::object(), {{"token", Json::array()}}})}};
  return json_answer(200, json);
}

}  // namespace carpool::proxy::admin
