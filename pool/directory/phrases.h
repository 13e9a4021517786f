// Phrases of sentences for operators.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace carpool::pool::phrases {

// Returns "1 borrow", "2 borrows".
std::string number(std::uint64_t count, std::string_view one, std::string_view many);
// Returns "20 ms", "1.5 s".
std::string time(Duration duration);
// Returns "20 ms", "119.0 s", "45 min", "3.2 h", "12.5 days".
std::string age(Duration duration);

}  // namespace carpool::pool::phrases
