// The door to toml++: a file or a text becomes a Config, or every mistake in it at once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/config_error.h"
#include "proxy/config/env.h"

namespace carpool::proxy::config {

// ReadingLimit: limits that make a text be rejected or truncated, whatever its settings.
enum class ReadingLimit : std::uint8_t {
  file,       // longer than 16 MiB
  depth,      // tables and lists inside each other
  variables,  // a value is longer than 64 KiB once its variables are in it
  mistakes,   // more than the 100 that are reported
};
inline constexpr std::array<std::string_view, 4> kReadingLimits{"file", "depth", "variables", "mistakes"};

struct Reading {
  Config config;  // only meaningful where mistakes is empty
  std::vector<ConfigError> mistakes;
  std::vector<ConfigError> warnings;
  std::array<bool, kReadingLimits.size()> met{};  // by ReadingLimit

  void meet(ReadingLimit limit) { met[static_cast<std::size_t>(limit)] = true; }
  explicit operator bool() const { return mistakes.empty(); }
};

// Read, resolved (per-origin overrides, "auto", TLS identities) and checked.
// `digest`, where it is asked for: of the very bytes that were read (base/contents.h).
Reading read_file(const std::string& path, const Env& env, std::size_t* digest = nullptr);
Reading read_text(std::string_view toml, const std::string& file, const Env& env);

}  // namespace carpool::proxy::config
