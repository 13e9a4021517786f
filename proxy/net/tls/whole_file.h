// Writes a file that appears whole or not at all.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::tls {

// Replaces the file at `path`. Its bytes reach the disk before its name does, and only its owner may read them before
// it has its `mode`. The Fault's detail is the path and the system's error. Blocking.
Status replace_file(const std::string& path, std::string_view bytes, mode_t mode);

}  // namespace carpool::proxy::tls
