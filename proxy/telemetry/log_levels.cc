#include "proxy/telemetry/log_levels.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/mutex.h"

namespace carpool::proxy::log {
namespace {

constexpr std::int8_t kFollows = -1;

// Relaxed throughout: a level orders nothing, and an extra or missing line during a change does not matter.
std::atomic<Level> program_level{Level::info};
struct ModuleLevels {
  ModuleLevels() { clear(); }
  void clear() {
    for (auto& one : own) one.store(kFollows, std::memory_order_relaxed);
  }
  std::array<std::atomic<std::int8_t>, kModules.size()> own;
} module_level;
// The minimum of all levels. Nearly every check is below it, and returns without a further lookup.
std::atomic<Level> least_level{Level::info};
Mutex changing;  // serialises changes, so that the minimum is never computed from a mix of two

void find_least() {
  Level least = program_level.load(std::memory_order_relaxed);
  for (const auto& one : module_level.own) {
    const std::int8_t own = one.load(std::memory_order_relaxed);
    if (own != kFollows) least = std::min(least, static_cast<Level>(own));
  }
  least_level.store(least, std::memory_order_relaxed);
}

constexpr std::size_t kAccess = 0;
static_assert(kModules[kAccess] == "access");
std::atomic<bool> access_on{true};
std::atomic<bool> clients_needed{false};
std::atomic<std::uint32_t> access_one_in{1};

// Maps the former names of two modules, accepted for one release (docs/upgrade.md).
std::string_view current_name(std::string_view module) {
  if (module == "house") return "server";
  return module == "upgrade" ? "handover" : module;
}

std::size_t index_of(std::string_view module) {
  return static_cast<std::size_t>(std::find(kModules.begin(), kModules.end(), module) - kModules.begin());
}

}  // namespace

bool known_module(std::string_view module) {
  return index_of(current_name(module)) != kModules.size();
}

std::optional<Level> parse_level(std::string_view text) {
  const auto* found = std::find(kLevelNames.begin(), kLevelNames.end(), text);
  if (found == kLevelNames.end()) return std::nullopt;
  return static_cast<Level>(found - kLevelNames.begin());
}

std::string_view name(Level level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}

void set_level(Level level) {
  const Held one_at_a_time(changing);
  module_level.clear();
  program_level.store(level, std::memory_order_relaxed);
  find_least();
}

bool set_level(std::string_view module, Level level) {
  const std::size_t index = index_of(current_name(module));
  if (index == kModules.size()) return false;
  const Held one_at_a_time(changing);
  module_level.own[index].store(static_cast<std::int8_t>(level), std::memory_order_relaxed);
  find_least();
  return true;
}

Level level() {
  return program_level.load(std::memory_order_relaxed);
}

bool enabled(Level asked, std::string_view module) {
  if (asked == Level::off || asked < least_level.load(std::memory_order_relaxed)) return false;
  const std::size_t index = index_of(module);
  if (index < kModules.size()) {
    const std::int8_t own = module_level.own[index].load(std::memory_order_relaxed);
    if (own != kFollows) return asked >= static_cast<Level>(own);
  }
  return asked >= level();
}

void set_access(bool on, std::uint32_t one_in, bool clients) {
  clients_needed.store(clients, std::memory_order_relaxed);
  access_one_in.store(one_in, std::memory_order_relaxed);
  access_on.store(on, std::memory_order_relaxed);
}

std::uint32_t access_sample() {
  return access_one_in.load(std::memory_order_relaxed);
}

bool access_enabled() {
  const std::int8_t own = module_level.own[kAccess].load(std::memory_order_relaxed);
  return own == kFollows ? access_on.load(std::memory_order_relaxed) : Level::info >= static_cast<Level>(own);
}

bool clients_wanted() {
  return access_enabled() || clients_needed.load(std::memory_order_relaxed);
}

std::vector<std::pair<std::string_view, Level>> module_levels() {
  std::vector<std::pair<std::string_view, Level>> all;
  for (std::size_t i = 0; i < kModules.size(); ++i) {
    const std::int8_t own = module_level.own[i].load(std::memory_order_relaxed);
    if (own != kFollows) all.emplace_back(kModules[i], static_cast<Level>(own));
  }
  return all;
}

}  // namespace carpool::proxy::log
