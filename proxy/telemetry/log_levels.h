// Levels: the log levels of the program and of single modules, changed at run time by PUT /log-level and by a reload. A
// check costs one relaxed load if the level is off, which is nearly always the case, and otherwise two or three.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

// All module names with a level. A line of any other module uses the program's level.
inline constexpr std::array<std::string_view, 22> kModules{
    "access", "admin",     "credentials", "dial",     "dns",    "egress", "exec", "handover",
    "health", "intercept", "leak",        "listener", "memory", "net",    "otlp", "overload",
    "pool",   "reload",    "server",      "summary",  "tls",    "webhook"};

// Returns true for the names above and for the former names of two modules.
bool known_module(std::string_view module);

inline constexpr std::array<std::string_view, 6> kLevelNames{"trace", "debug", "info", "warn", "error", "off"};
std::optional<Level> parse_level(std::string_view text);
std::string_view name(Level level);

// Any thread.
void set_level(Level level);                           // sets all modules and removes their own levels
bool set_level(std::string_view module, Level level);  // returns false if there is no such module
bool enabled(Level level, std::string_view module);
Level level();
std::vector<std::pair<std::string_view, Level>> module_levels();  // modules with their own level

// The access log has its own switch (log.access). A level for the module "access" takes precedence over it.
// `one_in`: one of this many successful exchanges is logged (log.access_sample).
// `clients`: the addresses of clients are also sent to an origin (request.client_field).
void set_access(bool on, std::uint32_t one_in, bool clients = false);
bool access_enabled();
bool clients_wanted();  // by the access log or for request.client_field
std::uint32_t access_sample();

}  // namespace carpool::proxy::log
