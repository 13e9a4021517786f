// The envelope of an OTLP request, which names the resource and the scope, and the parser of the response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proxy/config/config.h"

namespace carpool::proxy::otlp {

inline constexpr std::size_t kMaxResponse = std::size_t{64} * 1024;

// Returns the beginning of an ExportTraceServiceRequest or an ExportMetricsServiceRequest, whose layout is the same.
// The caller appends `size` bytes of ScopeSpans.spans or ScopeMetrics.metrics, which complete it. `instance`: the value
// of service.instance.id.
std::string envelope(const config::Otlp& settings, std::string_view instance, std::size_t size);

// ExportResponse: the content of a response with status 200.
struct ExportResponse {
  std::uint64_t rejected = 0;  // spans or data points rejected by a partial success
  std::string message;         // the reason, or a warning; printable ASCII, truncated
};
// Returns a Fault if the bytes are not an ExportTraceServiceResponse or ExportMetricsServiceResponse.
Result<ExportResponse> read_response(std::string_view body);

}  // namespace carpool::proxy::otlp
