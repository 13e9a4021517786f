// --health: checks whether the instance of this configuration is ready, for images without curl. Exit code 0 or 1.
#pragma once

#include "proxy/config/config.h"

namespace carpool::proxy {

int run_health_command(const config::Config& config);

}  // namespace carpool::proxy
