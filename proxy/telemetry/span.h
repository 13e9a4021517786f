// Span: one exchange as OpenTelemetry's span, as plain values. Views are valid while it is encoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy {

// 16 bytes; never all zero.
struct TraceId {
  std::uint64_t high = 0, low = 0;
};

// The span that a request's traceparent names.
struct SpanParent {
  TraceId trace;
  std::uint64_t span = 0;
  std::uint8_t flags = 0;
  bool sampled() const { return (flags & 1U) != 0; }
};

// The span of an exchange that runs.
struct ActiveSpan {
  static constexpr std::size_t kTraceParentSize = 55;  // "00-<32 digits>-<16 digits>-<2 digits>"
  SpanParent parent;                                   // parent.span 0: the exchange begins the trace
  std::uint64_t id = 0;
  std::array<char, kTraceParentSize> traceparent{};  // for the origin: it names this span
  Instant wait{}, dial{};                            // of the events; Instant{}: there was none
  Duration dialed{};

  bool begins_trace() const { return parent.span == 0; }
};

struct Span {
  TraceId trace;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0: it begins the trace
  std::uint8_t flags = 0;    // of the trace context
  bool to_origin = false;    // kind CLIENT; otherwise carpool answered alone: kind SERVER
  Instant began{}, ended{};
  // The events; Instant{}: there was none.
  Instant wait{}, dial{}, send{}, first_byte{};

  std::string_view method;
  std::string_view scheme, host;  // of the origin; no host: none was found
  std::uint16_t port = 0;
  std::string_view target;   // path and query, redacted; empty: a tunnel
  std::uint16_t status = 0;  // 0: the client got none
  std::string_view protocol_version;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::string_view error_type, error;  // error_type empty: none; error: a text of carpool's own

  bool asked_pool = false;
  Duration waited{}, dialed{};
  std::string_view opened;       // the connection's cause if it was opened for this exchange
  std::uint64_t connection = 0;  // 0: none
  std::uint32_t reuse = 0;
  std::uint32_t retries = 0;
  std::string_view retried, not_repeated;
};

}  // namespace carpool::proxy
