// The effective configuration as JSON, for GET /config.
#pragma once

#include <string>

#include "proxy/config/config.h"

namespace carpool::proxy::admin {

// Returns a JSON object with the keys and tables of config.toml, every default filled in, without secrets. Sizes and
// durations are texts ("16KiB", "30s"); absent ports are null. Takes memory for the text and for one origin at a time.
std::string config_json(const config::Config& config);

}  // namespace carpool::proxy::admin
