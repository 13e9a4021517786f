// The door to prometheus-cpp, whose data model a scrape is: one scrape as text 0.0.4. Its counters and registry stay
// outside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/families.h"

namespace carpool::metrics {

inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

// Some milliseconds for thousands of series: not on a loop that others wait for.
std::string exposition(const std::vector<Family>& families);

}  // namespace carpool::metrics
