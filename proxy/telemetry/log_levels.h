// Levels: what is worth a line, for the program and for single modules, changed while it runs by PUT /log-level and by
// a reload. Asking costs a relaxed load where the answer is no, as nearly always, else two or three.
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

// Every name that a line may carry as its module; a line of any other has the program's level.
inline constexpr std::array<std::string_view, 15> kModules{"access", "admin",  "dial",    "dns",      "exec",
                                                           "health", "house",  "leak",    "listener", "overload",
                                                           "pool",   "reload", "summary", "tls",      "upgrade"};

inline constexpr std::array<std::string_view, 6> kLevelNames{"trace", "debug", "info", "warn", "error", "off"};
std::optional<Level> parse_level(std::string_view text);
std::string_view name(Level level);

// Any thread.
void set_level(Level level);                           // of all, whatever single modules had
bool set_level(std::string_view module, Level level);  // false: no such module
bool enabled(Level level, std::string_view module);
Level level();
std::vector<std::pair<std::string_view, Level>> module_levels();  // those that have one of their own

// The access log has its own switch (log.access) beside the levels; a level of its own for the module "access" goes
// before it.
// `one_in`: of the exchanges that went well every so-manieth has a line (log.access_sample).
void set_access(bool on, std::uint32_t one_in);
bool access_enabled();
std::uint32_t access_sample();

}  // namespace carpool::proxy::log
