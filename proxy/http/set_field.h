// The rules for the fields that the configuration of an origin sets in each request to it.
#pragma once

#include <string_view>

namespace carpool::proxy::http {

// Returns the reason why no setting may set a field of this name, or nothing if one may: it is not a token, or carpool
// itself writes the field for each hop, for the framing or for the routing.
std::string_view refused_name(std::string_view name);

// Returns true if `value` is a field value as defined by RFC 9110 §5.5: visible characters, bytes above 0x7F, and
// between them spaces and tabs; not empty. Control characters, CR and LF among them, are none of these.
bool sendable_value(std::string_view value);

}  // namespace carpool::proxy::http
