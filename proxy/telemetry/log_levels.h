// Levels: the log levels of the program and of single modules, changed at run time by PUT /log-level and by a reload. A
// check costs one relaxed load if the level is off, as nearly always, otherwise two or three.
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

// All module names with a level; a line of any other module uses the program's level.
inline constexpr std::array<std::string_view, 22> kModules{
    "access", "admin",     "credentials", "dial",     "dns",    "egress", "exec", "handover",
    "health", "intercept", "leak",        "listener", "memory", "net",    "otlp", "overload",
    "pool",   "reload",    "server",      "summary",  "tls",    "webhook"};

// Returns true for the names above, and for the names that two modules had before.
bool known_module(std::string_view module);

inline constexpr std::array<std::string_view, 6> kLevelNames{"trace", "debug", "info", "warn", "error", "off"};
std::optional<Level> parse_level(std::string_view text);
std::string_view name(Level level);

// Any thread.
void set_level(Level level);                           // of all modules, replacing their own levels
bool set_level(std::string_view module, Level level);  // false: no such module
bool enabled(Level level, std::string_view module);
Level level();
std::vector<std::pair<std::string_view, Level>> module_levels();  // modules with their own level

// The access log has its own switch (log.access) besides the levels; a level for the module "access" takes precedence.
// `one_in`: logs one of this many successful exchanges (log.access_sample).
// `clients`: addresses of clients are needed besides the log (request.client_field).
void set_access(bool on, std::uint32_t one_in, bool clients = false);
bool access_enabled();
bool clients_wanted();  // by either
std::uint32_t access_sample();

}  // namespace carpool::proxy::log
