// Writes the request for a token by client credentials (RFC 6749 §4.4.2).
#pragma once

#include <string>
#include <string_view>

#include "proxy/config/config.h"
#include "proxy/config/token_url.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

// Fills `head`, in the absolute form, and returns the body. `secret`: that of the client; the head or the body contains
// it.
std::string write_token_request(http::RequestHead& head, const config::OAuth2& settings, const config::TokenUrl& url,
                                std::string_view secret);

// Encodes one name or value as application/x-www-form-urlencoded.
std::string form_encoded(std::string_view text);

}  // namespace carpool::proxy
