// choose_config_file(): chooses the configuration file if --config names none.
#pragma once

#include <optional>
#include <string>

#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

struct FoundConfig {
  std::string path;                    // empty: no file, the built-in defaults
  std::optional<ConfigError> warning;  // a warning: about a file whose name is not carpool's own
};

// Returns `given` (--config) if it is not empty, else ./carpool.toml, ./config.toml or /etc/carpool/config.toml. A
// ./config.toml is taken only if it has a key of carpool, or none at all, and never without a remark: many programs use
// the name.
FoundConfig choose_config_file(const std::string& given);

}  // namespace carpool::proxy::config
