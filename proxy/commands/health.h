// --health: is the instance of this configuration ready? For images that have no curl. Exit 0 or 1.
#pragma once

#include "proxy/config/config.h"

namespace carpool::proxy {

int run_health_command(const config::Config& config);

}  // namespace carpool::proxy
