// Output generated from the schema: a configuration as TOML, the commented default file, and its JSON Schema.
#pragma once

#include <string>

#include "proxy/config/config.h"

namespace carpool::proxy::config {

std::string print_config(const Config& config);  // with all defaults; parses to an equal Config
std::string print_default_config();              // config.toml at the root
std::string print_schema();                      // JSON Schema of config.toml

}  // namespace carpool::proxy::config
