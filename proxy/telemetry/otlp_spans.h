// Spans in the encoding of OTLP (opentelemetry-proto 1.x, trace.proto): Protocol Buffers over HTTP.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "proxy/telemetry/span.h"

namespace carpool::proxy::otlp {

// Upper bound of the bytes that append_span() appends: every text is truncated first.
inline constexpr std::size_t kMaxSpan = 4096;

// Appends one ScopeSpans.spans. `wall`: offset from the loop's clock to the time since 1970.
void append_span(std::string& out, const Span& span, Duration wall);

}  // namespace carpool::proxy::otlp
