// Output: where finished lines go. The only part that knows spdlog.
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

// Whole lines, each with its newline. Any thread; copies and returns at once. Full: dropped and counted.
void submit(std::string_view text, std::size_t lines);

Format current_format();

}  // namespace carpool::proxy::log
