// TokenUrl: the token endpoint of an authorization server, as the origin that serves it and the request's target.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pool/origin.h"

namespace carpool::proxy::config {

struct TokenUrl {
  pool::Origin origin;
  std::string path;  // with its query
};

// Parses "https://host[:port]/path", and "http://" for an address of this host: a client secret never travels in the
// clear. The Fault's detail is the reason.
Result<TokenUrl> parse_token_url(std::string_view text);

}  // namespace carpool::proxy::config
