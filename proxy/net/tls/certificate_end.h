// certificate_end(): the end of the validity of a certificate in a file.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace carpool::proxy::tls {

// Returns the end of the first certificate of a PEM file, which is the leaf of a chain. Blocking. The Fault names the
// file.
Result<std::chrono::system_clock::time_point> certificate_end(const std::string& path);

}  // namespace carpool::proxy::tls
