// CredentialsState: the state of an origin's credentials as shown to an operator; never contains a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace carpool::proxy::admin {

struct CredentialsState {
  std::uint32_t stale_files = 0;
  std::string token;                      // "valid", "expected", "missing"; empty: no [origin.oauth2]
  std::optional<Duration> token_expires;  // remaining lifetime of a valid token
  std::string failure;                    // why the last request for a token failed; empty if it succeeded
};

}  // namespace carpool::proxy::admin
