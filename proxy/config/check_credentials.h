// The rules about what an origin's settings may put into its requests: checked alone, without the file's places.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "proxy/config/config.h"

namespace carpool::proxy::config {

inline constexpr std::size_t kMostFields = 32;
inline constexpr std::size_t kLongestFields = std::size_t{8} * 1024;  // names and values together

// Returns the keys below the origin, such as "request.headers.Authorization", each with its error text. Reads the
// files; no text shows a value.
std::vector<std::pair<std::string, std::string>> credential_errors(const OriginSettings& origin, const Config& config);

// Returns true if what is sent there in the clear stays on this host: its name, or every address that is listed for it.
bool on_this_host(const OriginSettings& origin);

}  // namespace carpool::proxy::config
