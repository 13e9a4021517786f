// Output: writes finished lines. Only these files use spdlog.
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

// Queues complete lines, each with its newline. Copies the text and never blocks; if the queue is full, the lines are
// dropped and counted. Any thread.
void submit(std::string_view text, std::size_t lines, Level level);  // `level`: of all these lines
void submit_access(std::string_view text, std::size_t lines);        // lines of the access log

Format current_format();

}  // namespace carpool::proxy::log
