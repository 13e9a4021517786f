// certificate_end(): the end of the validity of a certificate in a file.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace carpool::proxy::tls {

// Returns the end of the first certificate of a PEM file, which is the leaf of a chain. Blocking. The Fault names the
// file.
Result<std::chrono::sys_seconds> certificate_end(const std::string& path);  // seconds: nanoseconds end in 2262

}  // namespace carpool::proxy::tls
