// The ORIGIN of a command line: a URI, an alias, a host, or any part of one origin's URI.
#pragma once

#include <string>
#include <vector>

#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

struct OriginWord {
  std::string origin;    // empty: none, or more than one
  std::string wrong;     // why
  bool unclear = false;  // the word means several
};

// `origins`: the list of GET /origins. An alias and a whole host are preferred to a part of a URI.
OriginWord find_origin(const std::string& word, const Json& origins);
// Returns each origin and then each alias, one a line.
std::string origin_words(const Json& origins);

}  // namespace carpool::proxy::cli
