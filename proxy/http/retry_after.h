// Retry-After (RFC 9110 §10.2.3): the pause that an origin requests.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Returns the pause, from delta-seconds or a date, or nullopt if there is none: no field, no valid value, or a time in
// the past. A date counts from the response's own Date, so that the clocks need not agree, else from `wall`.
std::optional<Duration> retry_after(const Fields& fields, std::chrono::sys_seconds wall);

}  // namespace carpool::proxy::http
