// find_origin(): resolves the ORIGIN of a command line: a URI, an alias, a host, or any part of one origin's URI.
#pragma once

#include <string>
#include <vector>

#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

struct OriginMatch {
  std::string origin;      // empty if none or several match
  std::string error;       // error text
  bool ambiguous = false;  // several origins match
};

// `origins`: the list of GET /origins. An alias or a complete host takes precedence over a part of a URI.
OriginMatch find_origin(const std::string& word, const Json& origins);
// Returns each origin and then each alias, one per line.
std::string origin_names(const Json& origins);

}  // namespace carpool::proxy::cli
