// The pod's annotation `carpool.io/intercept`, which selects the https origins whose TLS ends in the sidecar. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "proxy/config/read_intercept.h"

namespace carpool::proxy::webhook {

inline constexpr const char* kIntercept = "carpool.io/intercept";

// "true": each https origin of the configuration; "false": none; otherwise hosts, each optionally with a port,
// separated by commas or white space. Empty: as configured. The Fault names an invalid word.
Result<config::InterceptRequest> parse_intercept(std::string_view text);

}  // namespace carpool::proxy::webhook
