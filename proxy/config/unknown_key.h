// unknown_key(): the error text for a key that a table does not have, with the probable key and its table.
#pragma once

#include <string>
#include <string_view>

#include "proxy/config/schema.h"

namespace carpool::proxy::config {

// `in_origin`: the table belongs to an [[origin]], whose other tables are searched first.
std::string unknown_key(const Section& section, std::string_view key, bool in_origin);

}  // namespace carpool::proxy::config
