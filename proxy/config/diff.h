// Compares two configurations key by key, as defined by the schema, and marks the changes that need a restart.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace carpool::proxy::config {

struct Change {
  std::string key;       // "pool.size", "listen 127.0.0.1:3128", "origin https://a: pool.size"
  std::string from, to;  // as TOML; empty: absent
  bool live = true;      // false: needs a restart
};

// Returns the changes. Listeners are identified by their address, origins by their URI. An inherited change is reported
// once, for the section in which it is set.
std::vector<Change> diff(const Config& before, const Config& after);

// Copies the values of settings that need a restart from `before` to `after`, so that `after` describes the settings in
// force.
void keep_what_needs_restart(const Config& before, Config& after);

}  // namespace carpool::proxy::config
