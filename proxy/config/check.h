// What one setting alone cannot tell: settings that contradict each other, and what would be unsafe.
#pragma once

#include "proxy/config/read.h"

namespace carpool::proxy::config {

// Appends to reading.mistakes and reading.warnings.
void check(Reading& reading, const Places& places, const std::string& file);

}  // namespace carpool::proxy::config
