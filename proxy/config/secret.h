// Reads the secrets that a configuration contains or takes from files.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "proxy/config/config.h"

namespace carpool::proxy::config {

inline constexpr std::size_t kMaxSecretLength = std::size_t{8} * 1024;

// Returns the value: the text, or the prefix and the file's content without the white space at its end. The file is
// opened by open_to_read(), which does not wait for a writer. The Fault's detail gives the file and the reason and
// never contains the value. Blocking.
Result<std::string> value_of(const Secret& secret);

// Overwrites the bytes, so that freed memory does not hold them.
void wipe(std::string& value);

}  // namespace carpool::proxy::config
