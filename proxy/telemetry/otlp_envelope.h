// The frame of one OTLP request around its spans or metrics, which names the resource and the scope; and its response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proxy/config/config.h"

namespace carpool::proxy::otlp {

inline constexpr std::size_t kLongestResponse = std::size_t{64} * 1024;

// The begin of an ExportTraceServiceRequest or an ExportMetricsServiceRequest, whose layout is the same: `size` bytes
// of ScopeSpans.spans or ScopeMetrics.metrics follow and end it. `instance`: service.instance.id.
std::string envelope(const config::Otlp& settings, std::string_view instance, std::size_t size);

// The content of a response with status 200.
struct ExportResponse {
  std::uint64_t rejected = 0;  // spans or data points, of a partial success
  std::string message;         // why, or a warning; printable ASCII, cut
};
// The Fault: the bytes are no ExportTraceServiceResponse or ExportMetricsServiceResponse.
Result<ExportResponse> read_response(std::string_view body);

}  // namespace carpool::proxy::otlp
