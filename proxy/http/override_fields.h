// Fields by which many frameworks let a request ask for another method or another path than those of its own.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Overrides: what an origin that obeys such fields would execute. A value points into the fields.
struct Overrides {
  std::string method;     // in capitals, as frameworks compare it; empty: that of the request
  std::string_view path;  // empty: that of the request
  bool differ = false;    // two fields name different methods or paths, so that the origin decides which one counts
};

// Reads X-HTTP-Method-Override, X-Method-Override, X-HTTP-Method, and X-Original-URL, X-Rewrite-URL. A name with an
// underscore instead of a hyphen counts, because CGI and its descendants cannot tell them apart.
Overrides overrides_of(const Fields& fields);

}  // namespace carpool::proxy::http
