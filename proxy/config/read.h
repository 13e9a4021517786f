// The door to toml++: a file or a text becomes a Config, or every mistake in it at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/env.h"
#include "proxy/config/mistake.h"

namespace carpool::proxy::config {

struct Reading {
  Config config;  // only meaningful where mistakes is empty
  std::vector<Mistake> mistakes;
  std::vector<Mistake> warnings;
  explicit operator bool() const { return mistakes.empty(); }
};

// Read, resolved (per-origin overrides, "auto", TLS identities) and checked.
// `digest`, where it is asked for: of the very bytes that were read (base/contents.h).
Reading read_file(const std::string& path, const Env& env, std::size_t* digest = nullptr);
Reading read_text(std::string_view toml, const std::string& file, const Env& env);

}  // namespace carpool::proxy::config
