// Output: writes finished lines. Only these files use spdlog.
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

// Queues whole lines, each with its newline. Any thread; copies the text and never blocks. If the queue is full, the
// lines are dropped and counted.
void submit(std::string_view text, std::size_t lines, Level level);  // the level of all of them
void submit_access(std::string_view text, std::size_t lines);        // of the access log

Format current_format();

}  // namespace carpool::proxy::log
