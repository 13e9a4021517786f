// The priority class of a request in its origin's pool. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy {

// Returns the urgency of a Priority field (RFC 9218 §4.1), 0 (most urgent) to 7; 3 if it is absent or malformed.
unsigned urgency(std::string_view priority);

// Returns the index of the class in `classes`, which lists the highest first. `named` is the listener's class. If it is
// empty or the pool has no class of that name, the request's Priority decides: the eight urgencies are spread over the
// classes, so that the default urgency (3) is in the lower half.
std::uint8_t class_of(const std::vector<std::string>& classes, std::string_view named, std::string_view priority);

}  // namespace carpool::proxy
