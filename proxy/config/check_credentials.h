// The rules for the fields and tokens that an origin's settings add to its requests, checked without the file's places.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/config/config.h"

namespace carpool::proxy::config {

inline constexpr std::size_t kMaxFields = 32;
inline constexpr std::size_t kMaxFieldBytes = std::size_t{8} * 1024;  // names and values together

// Returns the keys below the origin, such as "request.headers.Authorization", each with its error text. Reads the
// files. No error text contains a value.
std::vector<std::pair<std::string, std::string>> credential_errors(const OriginSettings& origin, const Config& config);

// Returns true if the text is "user:password" and may be part of a field.
bool is_user_and_password(std::string_view text);

// Returns why these credentials for a parent proxy cannot be used; empty if they can. Reads the file.
std::string refused_proxy_credentials(const Secret& credentials);

// Returns true if plain text sent to the origin stays on this host, by its name or by every address listed for it.
bool on_this_host(const OriginSettings& origin);

}  // namespace carpool::proxy::config
