// Finds a group of the system by its name or number.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace carpool::proxy::config {

// Returns nothing if `name` is neither a group of the system nor a number. Reads the system's database: blocking.
std::optional<gid_t> find_group(const std::string& name);

}  // namespace carpool::proxy::config
