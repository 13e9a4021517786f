// Computes settings that depend on other settings.
#pragma once

#include "proxy/config/config.h"
#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

// A warm-up size that was not written fits itself to the pool; every origin gets the number of its TLS identity.
void resolve(Config& config, const Places& places);

}  // namespace carpool::proxy::config
