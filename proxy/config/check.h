// Checks across settings: contradictions, and unsafe combinations.
#pragma once

#include "proxy/config/read.h"

namespace carpool::proxy::config {

// Append to reading.errors and reading.warnings, and note the files that the configuration names.
void check_servers(Reading& reading, const Places& places, const std::string& file);
void check_origins(Reading& reading, const Places& places, const std::string& file);

// All checks.
void check(Reading& reading, const Places& places, const std::string& file);

}  // namespace carpool::proxy::config
