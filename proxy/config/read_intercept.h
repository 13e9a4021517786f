// Sets origin.intercept in the text of a configuration, for callers that request it outside the file. Wraps toml++
// together with read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pool/origin.h"

namespace carpool::proxy::config {

struct InterceptRequest {
  enum class Which { as_configured, none, every_https, listed };
  Which which = Which::as_configured;
  std::vector<pool::Origin> origins;  // of `listed`, in addition to those of the text
};

struct InterceptedText {
  std::string text;
  std::vector<std::string> hosts;  // of the intercepted origins, each once; empty: nothing is intercepted
};

// Returns `base` with intercept set as requested: an origin that the text lacks is appended, and intercept.ca_dir
// becomes `ca_dir`, or loses this value if nothing is intercepted: that folder is only where something is.
// `every_https` are the origins of the text. The Fault gives the position at which `base` is not TOML, or its different
// ca_dir. The caller must check the result.
Result<InterceptedText> set_intercept(std::string_view base, const InterceptRequest& request,
                                      const std::string& ca_dir);

}  // namespace carpool::proxy::config
