// Parses the response of a token endpoint (RFC 6749 §5).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace carpool::proxy {

inline constexpr std::size_t kMaxTokenReply = std::size_t{64} * 1024;

struct Token {
  std::string value;
  Duration lifetime{};
};

// Returns the token, or a Fault that contains nothing of the response except its status and a registered error code,
// because a broken server may repeat the secret in any other part.
Result<Token> read_token(unsigned status, std::string_view body);

// Returns true if the endpoint answered with an error, and not with an invalid token.
bool refuses_token(unsigned status);

}  // namespace carpool::proxy
