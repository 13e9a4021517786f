// Checks across settings: contradictions, and unsafe combinations.
#pragma once

#include "proxy/config/read.h"

namespace carpool::proxy::config {

// Appends to reading.errors and reading.warnings.
void check(Reading& reading, const Places& places, const std::string& file);

}  // namespace carpool::proxy::config
