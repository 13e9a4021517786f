// CredentialsState: what an operator may know of the credentials that an origin's requests get; never a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace carpool::proxy::admin {

struct CredentialsState {
  std::uint32_t stale_files = 0;
  std::string token;                      // "valid", "expected", "missing"; empty: no [origin.oauth2]
  std::optional<Duration> token_expires;  // of a valid one
  std::string failure;                    // why the last request for a token failed; empty: it did not
};

}  // namespace carpool::proxy::admin
