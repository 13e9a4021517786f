// Which priority class of an origin's pool a request belongs to. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy {

// Of a Priority field (RFC 9218 §4.1), 0 the most urgent to 7; 3 where it says nothing or nothing that can be read.
unsigned urgency(std::string_view priority);

// The number of the class among `classes`, the highest first. `named`: the listener's; where the pool has none of that
// name, or the listener names none, the request's own Priority decides: the eight urgencies are spread over the
// classes, so that those more urgent than usual come first and the usual ones (3) are in the lower half.
std::uint8_t class_of(const std::vector<std::string>& classes, std::string_view named, std::string_view priority);

}  // namespace carpool::proxy
