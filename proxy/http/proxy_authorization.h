// The credentials that a request carries for this proxy (Proxy-Authorization, RFC 9110 §11.7.2), of the schemes Basic
// (RFC 7617) and Bearer (RFC 6750).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy::http {

inline constexpr std::size_t kMaxProxyAuthorization = 4096;  // bytes of the value; a longer one is malformed

struct ProxyAuthorization {
  enum class Form : std::uint8_t { absent, malformed, basic, bearer };
  Form form = Form::absent;
  std::string_view name;    // of Basic; no colon
  std::string_view secret;  // the password or the token
};

// Holds the decoded text of Basic.
using DecodedCredentials = std::array<char, kMaxProxyAuthorization / 4 * 3>;

// The field must occur once (RFC 9110 §5.3), with one scheme and token68. Views point into `fields` and `decoded`.
ProxyAuthorization read_proxy_authorization(const Fields& fields, DecodedCredentials& decoded);

// Returns true if it can be a token in Bearer.
bool token68(std::string_view text);

}  // namespace carpool::proxy::http
