// RequestUrl: the URL of a request that carpool sends by itself, as the origin that serves it and the request's target.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pool/origin.h"

namespace carpool::proxy::config {

struct RequestUrl {
  pool::Origin origin;
  std::string path;  // with its query; empty: the URL has none
};

// Parses "http://host[:port]/path" or https, without user and fragment. The Fault's detail is the reason and does not
// contain the URL.
Result<RequestUrl> parse_request_url(std::string_view text);

}  // namespace carpool::proxy::config
