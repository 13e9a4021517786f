// Span: one exchange as an OpenTelemetry span, as plain values. Views must be valid while it is encoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy {

// TraceId: 16 bytes, never all zero.
struct TraceId {
  std::uint64_t high = 0, low = 0;
};

// SpanParent: the span that a request's traceparent names.
struct SpanParent {
  TraceId trace;
  std::uint64_t span = 0;
  std::uint8_t flags = 0;
  bool sampled() const { return (flags & 1U) != 0; }
};

// ActiveSpan: the span of a running exchange.
struct ActiveSpan {
  static constexpr std::size_t kTraceParentSize = 55;  // "00-<32 digits>-<16 digits>-<2 digits>"
  SpanParent parent;                                   // parent.span is 0 if the exchange begins the trace
  std::uint64_t id = 0;
  std::array<char, kTraceParentSize> traceparent{};  // sent to the origin; names this span
  Instant wait{}, dial{};                            // times of the events; Instant{} if there was none
  Duration dialed{};

  bool begins_trace() const { return parent.span == 0; }
};

struct Span {
  TraceId trace;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0 if the span begins the trace
  std::uint8_t flags = 0;    // flags of the trace context
  bool to_origin = false;    // kind CLIENT; otherwise kind SERVER, because carpool itself replied
  Instant began{}, ended{};
  // Times of the events; Instant{} if there was none.
  Instant wait{}, dial{}, send{}, first_byte{};

  std::string_view method;
  std::string_view scheme, host;  // scheme and host of the origin; `host` is empty if no origin was found
  std::uint16_t port = 0;
  std::string_view target;   // path and query, redacted; empty for a tunnel
  std::uint16_t status = 0;  // 0 if the client received no response
  std::string_view protocol_version;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::string_view error_type, error;  // error_type is empty if there is none; error: a text of carpool's own

  bool asked_pool = false;
  Duration waited{}, dialed{};
  std::string_view opened;       // the connection's cause, if it was opened for this exchange
  std::uint64_t connection = 0;  // 0 if none
  std::uint32_t reuse = 0;
  std::uint32_t retries = 0;
  std::string_view retried, not_repeated;
};

}  // namespace carpool::proxy
