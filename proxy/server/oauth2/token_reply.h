// Reads the response of a token endpoint (RFC 6749 §5).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace carpool::proxy {

inline constexpr std::size_t kLongestTokenReply = std::size_t{64} * 1024;

struct Token {
  std::string value;
  Duration lifetime{};
};

// Returns the token, or a Fault that shows nothing of the response but its status and a registered error code: a broken
// server may put the secret that it got into any other part.
Result<Token> read_token(unsigned status, std::string_view body);

// Returns true if the endpoint answered with an error of its own, not with something that is no token.
bool refuses_token(unsigned status);

}  // namespace carpool::proxy
