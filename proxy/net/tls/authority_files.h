// Writes the files of a new Authority.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace carpool::proxy::tls {

// Creates an authority for `hosts` (names in lower case, or addresses without brackets) that is valid for `life`, and
// writes `ca.key` (mode 0600) and `ca.pem` into `dir`. Each file appears whole or not at all, the key first. Files of
// these names are replaced. Faults contain the file and the system's reason. Blocking.
Status create_authority(const std::string& dir, const std::vector<std::string>& hosts, std::chrono::seconds life);

}  // namespace carpool::proxy::tls
