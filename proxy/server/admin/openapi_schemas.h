// The response schemas of /openapi.json, except those that are generated from the program.
#pragma once

#include <string_view>

namespace carpool::proxy::admin {

// Schemas of parameters that refer to one of these.
inline constexpr std::string_view kLevelSchema = R"({"$ref": "#/components/schemas/LogLevel"})";
inline constexpr std::string_view kModuleSchema = R"({"$ref": "#/components/schemas/LogModule"})";

// Defines every name that a Route's `content_name` or `body` uses.
inline constexpr const char* kSchemas = R"({
  "Problem": {"type": "object", "required": ["type", "title", "status", "detail", "error"], "properties": {
    "type": {"type": "string", "enum": ["about:blank"]}, "title": {"type": "string"},
    "status": {"type": "integer", "minimum": 400, "maximum": 599}, "detail": {"type": "string"}, "error": {"type": "string"},
    "mistakes": {"type": "array", "items": {"type": "string"}}}},
  "Status": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
  "PoolStatus": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"},
    "resumes_in_seconds": {"type": "number"}}},
  "Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"},
    "reasons": {"type": "array", "items": {"type": "string"}},
    "warm_up_failed": {"type": "array", "items": {"type": "string"}},
    "paused": {"type": "array", "items": {"type": "string"}}}},
  "Origins": {"type": "object", "required": ["origins"], "properties": {"origins": {"type": "array", "items": {
    "type": "object", "required": ["origin", "alias", "pool"], "properties": {"origin": {"type": "string"},
    "alias": {"type": "array", "items": {"type": "string"}}, "pool": {"type": "boolean"}}}}}},
  "Version": {"type": "object", "required": ["version", "compiler", "build"], "properties": {
    "version": {"type": "string"}, "compiler": {"type": "string"}, "build": {"type": "string"}}},
  "LogLevels": {"type": "object", "required": ["level", "modules"], "properties": {"level": {"type": "string"},
    "modules": {"type": "object", "additionalProperties": {"type": "string"}}}},
  "LogLevelRequest": {"type": "object", "required": ["level"], "additionalProperties": false, "properties": {
    "level": {"$ref": "#/components/schemas/LogLevel"}, "module": {"$ref": "#/components/schemas/LogModule"}}},
  "ServerSentEvent": {"type": "object", "required": ["event", "data"], "properties": {
    "event": {"type": "string", "enum": ["state", "change"]}, "data": {"type": "string"}}},
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
  "Overload": {"type": "object", "required": ["shed_level", "stage", "memory", "descriptors", "failed_allocations", "heap"], "properties": {
    "shed_level": {"type": "string", "enum": ["nothing", "keep_alive", "new_clients", "idle"]},
    "sheds": {"type": "string", "deprecated": true}, "stage": {"type": "integer"},
    "memory": {"$ref": "#/components/schemas/Use"}, "descriptors": {"$ref": "#/components/schemas/Use"},
    "failed_allocations": {"type": "integer", "minimum": 0},
    "heap": {"type": "object", "required": ["used", "free_bytes", "returned"], "properties": {"used": {"type": "integer", "minimum": 0},
      "free_bytes": {"type": "integer", "minimum": 0}, "unused": {"type": "integer", "deprecated": true}, "returned": {"type": "integer", "minimum": 0}}}}},
  "Counts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
  "PoolMetrics": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Counts"}},
  "Pool": {"type": "object",
    "required": ["origin", "active", "borrowable", "borrowed", "connecting", "waiting", "waiting_tunnels", "max_wait_seconds", "size", "auto_size",
                 "peak", "borrows", "restores", "created", "leaks", "saved", "rate_limited", "connections", "opened", "closed", "failures",
                 "learned_idle_timeout_seconds", "probing", "paused", "draining", "paused_seconds", "resumes_in_seconds", "undialed",
                 "cooling_down", "cool_down_status", "cools_for_seconds", "cool_downs",
                 "failing", "ejected_addresses"],
    "properties": {
      "origin": {"type": "string"},
      "active": {"type": "integer", "minimum": 0}, "borrowable": {"type": "integer", "minimum": 0},
      "borrowed": {"type": "integer", "minimum": 0}, "connecting": {"type": "integer", "minimum": 0},
      "waiting": {"type": "integer", "minimum": 0}, "waiting_tunnels": {"type": "integer", "minimum": 0, "description": "of the waiting ones, those that wait for a place of pool.max_tunnels"}, "max_wait_seconds": {"type": "number", "minimum": 0},
      "size": {"type": "integer", "minimum": 0}, "peak": {"type": "integer", "minimum": 0},
      "auto_size": {"type": "object", "nullable": true, "required": ["min_size", "max_size", "changes", "last"], "properties": {
        "min_size": {"type": "integer", "minimum": 1}, "max_size": {"type": "integer", "minimum": 1},
        "changes": {"$ref": "#/components/schemas/Counts"},
        "last": {"type": "array", "items": {"type": "object", "required": ["ago_seconds", "from", "to", "reason", "why"], "properties": {
          "ago_seconds": {"type": "number", "minimum": 0}, "from": {"type": "integer"}, "to": {"type": "integer"},
          "reason": {"type": "string", "enum": ["waits", "latency", "restored", "refused", "dials"]},
          "why": {"type": "string"}}}}}},
      "borrows": {"type": "integer", "minimum": 0}, "restores": {"type": "integer", "minimum": 0},
      "saved": {"type": "object", "required": ["dials", "seconds", "cpu_seconds"], "properties": {
        "dials": {"type": "integer", "minimum": 0}, "seconds": {"type": "number"}, "cpu_seconds": {"type": "number"}}},
      "rate_limited": {"type": "object", "required": ["requests", "connections"], "properties": {
        "requests": {"type": "integer", "minimum": 0}, "connections": {"type": "integer", "minimum": 0}}},
      "created": {"type": "integer", "minimum": 0}, "leaks": {"type": "integer", "minimum": 0},
      "connections": {"$ref": "#/components/schemas/Counts"}, "opened": {"$ref": "#/components/schemas/Counts"},
      "closed": {"$ref": "#/components/schemas/Counts"}, "failures": {"$ref": "#/components/schemas/Counts"},
      "learned_idle_timeout_seconds": {"type": "number", "nullable": true},
      "paused": {"type": "boolean"}, "draining": {"type": "boolean"},
      "paused_seconds": {"type": "number", "nullable": true}, "resumes_in_seconds": {"type": "number", "nullable": true},
      "cooling_down": {"type": "boolean"}, "cool_down_status": {"type": "integer", "nullable": true},
      "cools_for_seconds": {"type": "number", "nullable": true}, "cool_downs": {"type": "integer", "minimum": 0},
      "probing": {"type": "boolean"}, "undialed": {"type": "integer", "minimum": 0},
      "failing": {"type": "object", "nullable": true, "required": ["requests", "failed", "last_seconds", "reason"], "properties": {
        "requests": {"type": "integer", "minimum": 0}, "failed": {"type": "integer", "minimum": 0},
        "last_seconds": {"type": "number", "nullable": true}, "reason": {"type": "string", "nullable": true}}},
      "ejected_addresses": {"type": "integer", "minimum": 0},
      "addresses": {"type": "array", "items": {"type": "object",
        "required": ["address", "state", "open", "failures", "ejections", "busy", "requests", "response_seconds", "share"], "properties": {
          "address": {"type": "string"}, "state": {"type": "string", "enum": ["usable", "ejected", "gone"]},
          "open": {"type": "integer", "minimum": 0}, "failures": {"type": "integer", "minimum": 0},
          "ejections": {"type": "integer", "minimum": 0},
          "busy": {"type": "integer", "minimum": 0}, "requests": {"type": "integer", "minimum": 0},
          "response_seconds": {"type": "number", "nullable": true}, "share": {"type": "number"}}}},
      "credentials": {"type": "object", "required": ["stale_files", "token", "token_expires_seconds", "failure"],
        "properties": {
        "stale_files": {"type": "integer", "minimum": 0},
        "token": {"type": "string", "nullable": true, "enum": ["valid", "expected", "missing", null]},
        "token_expires_seconds": {"type": "number", "nullable": true},
        "failure": {"type": "string", "nullable": true}}},
      "classes": {"type": "array", "items": {"type": "object", "required": ["name", "waiting", "leases", "limit"],
        "properties": {"name": {"type": "string"}, "waiting": {"type": "integer", "minimum": 0},
          "leases": {"type": "integer", "minimum": 0}, "limit": {"type": "integer", "minimum": 0},
          "share": {"type": "integer", "minimum": 0, "deprecated": true}}}}}},
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
  "WarmUp": {"type": "object", "required": ["opened", "failure", "requested", "capped_at"], "properties": {"opened": {"type": "integer", "minimum": 0},
    "requested": {"type": "integer", "minimum": 0}, "capped_at": {"type": "integer", "nullable": true},
    "made": {"type": "integer", "deprecated": true},
    "failure": {"type": "string", "nullable": true}}},
  "Sentences": {"type": "array", "items": {"type": "string"}},
  "Explanation": {"type": "object", "required": ["origin", "explanation"], "properties": {"origin": {"type": "string"},
    "explanation": {"$ref": "#/components/schemas/Sentences"},
    "sentences": {"$ref": "#/components/schemas/Sentences"}}},
  "Advice": {"type": "object", "required": ["origin", "method", "advice"], "properties": {"origin": {"type": "string"},
    "method": {"type": "string"}, "reason": {"type": "string"},
    "why_not": {"type": "string", "deprecated": true},
    "advice": {"type": "object", "nullable": true, "required": ["arrivals_per_second", "hold_seconds", "wait_seconds",
      "offered_load", "target_seconds", "target_met", "current", "recommended", "explanation"]}}},
  "Replayed": {"type": "object", "required": ["settings", "outcome"], "properties": {"settings": {"type": "object"},
    "outcome": {"type": "object", "required": ["served", "refused", "timed_out", "handshakes", "peak", "wait_seconds"]}}},
  "WhatIf": {"type": "object", "required": ["origin", "borrows", "current", "simulated", "handshakes_saved", "explanation"],
    "properties": {"current": {"$ref": "#/components/schemas/Replayed"}, "simulated": {"$ref": "#/components/schemas/Replayed"},
      "present": {"$ref": "#/components/schemas/Replayed"}, "what_if": {"$ref": "#/components/schemas/Replayed"},
      "handshakes_saved": {"type": "integer"}, "explanation": {"$ref": "#/components/schemas/Sentences"}, "sentences": {"$ref": "#/components/schemas/Sentences"}}},
  "Leak": {"type": "object", "required": ["id", "kind", "origin", "connection", "found_seconds_ago", "age_seconds",
      "returned", "action", "borrower"], "properties": {"id": {"type": "integer"},
      "kind": {"type": "string", "enum": ["held", "lost", "untracked"]}, "origin": {"type": "string", "nullable": true},
      "connection": {"type": "integer"}, "found_seconds_ago": {"type": "number"}, "age_seconds": {"type": "number"},
      "returned": {"type": "boolean"}, "action": {"type": "string", "enum": ["report", "discard"]},
      "borrower": {"type": "object", "required": ["request", "phase", "client", "user", "pid", "uid", "trace_id",
        "bytes_in", "bytes_out"]}}},
  "History": {"type": "object", "required": ["origin", "every_seconds", "ago_seconds", "requests_per_second", "failed_per_second",
      "p50_seconds", "p99_seconds", "waiting", "busy", "open"], "properties": {
    "origin": {"type": "string", "nullable": true}, "every_seconds": {"type": "number"}, "ago_seconds": {"type": "array", "items": {"type": "number", "minimum": 0}},
    "requests_per_second": {"type": "array", "items": {"type": "number", "minimum": 0}}, "failed_per_second": {"type": "array", "items": {"type": "number", "minimum": 0}},
    "p50_seconds": {"type": "array", "items": {"type": "number", "nullable": true}},
    "p99_seconds": {"type": "array", "items": {"type": "number", "nullable": true}},
    "waiting": {"type": "array", "items": {"type": "number", "minimum": 0}}, "busy": {"type": "array", "items": {"type": "number", "minimum": 0}}, "open": {"type": "array", "items": {"type": "number", "minimum": 0}}}},
  "Leaks": {"type": "object", "required": ["leaks"], "properties": {
    "leaks": {"type": "array", "items": {"$ref": "#/components/schemas/Leak"}}}},
  "Connections": {"type": "object", "required": ["connections"], "properties": {
    "connections": {"type": "array", "items": {"$ref": "#/components/schemas/Connection"}}}}
})";

}  // namespace carpool::proxy::admin
