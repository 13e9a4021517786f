// TokenUrl: the token endpoint of an authorization server.
#pragma once

#include <string_view>

#include "proxy/config/request_url.h"

namespace carpool::proxy::config {

using TokenUrl = RequestUrl;  // with a path

// Parses "https://host[:port]/path", and "http://" for an address of this host: a client secret is never sent over a
// network in plain text. The Fault's detail is the reason.
Result<TokenUrl> parse_token_url(std::string_view text);

}  // namespace carpool::proxy::config
