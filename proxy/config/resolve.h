// Computes settings that depend on other settings.
#pragma once

#include "proxy/config/config.h"
#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

// Limits a warm-up size that was not written to the pool's size, and gives every origin the number of its TLS identity.
void resolve(Config& config, const Places& places);

}  // namespace carpool::proxy::config
