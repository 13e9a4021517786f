// Compares two configurations key by key, as defined by the schema, and marks the changes that need a restart.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace carpool::proxy::config {

struct Change {
  std::string key;       // "pool.size", "listen 127.0.0.1:3128", "origin https://a: pool.size"
  std::string from, to;  // as TOML; empty: it was not there, or is not there any more
  bool live = true;      // false: it takes a restart
};

// Listeners are told apart by their address, origins by their URI. What an origin merely inherits is told once, of the
// section that it comes from.
std::vector<Change> diff(const Config& before, const Config& after);

// Gives `after` the values of `before` wherever a change takes a restart, so that it says what is in force.
void keep_what_needs_restart(const Config& before, Config& after);

}  // namespace carpool::proxy::config
