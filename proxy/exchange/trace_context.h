// W3C trace context (https://www.w3.org/TR/trace-context/): parses traceparent, and writes that of a span of carpool.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/telemetry/span.h"

namespace carpool::proxy {

inline constexpr std::size_t kTraceParentSize = ActiveSpan::kTraceParentSize;
using TraceParentText = std::array<char, kTraceParentSize>;

namespace detail {
inline constexpr std::size_t kTraceAt = 3, kTraceDigits = 32, kSpanAt = 36, kSpanDigits = 16, kFlagsAt = 53;

inline bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
inline std::uint64_t value_of_hex(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) value = value << 4U | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}
inline void write_hex(std::uint64_t value, char* out, std::size_t digits) {
  for (std::size_t i = digits; i > 0; --i, value >>= 4U) out[i - 1] = "0123456789abcdef"[value & 15U];
}
}  // namespace detail

// Returns the trace id, of this or a later version of the field; empty if the field is malformed or names no trace.
inline std::string_view trace_id(std::string_view traceparent) {
  using namespace detail;
  if (traceparent.size() < kTraceParentSize || traceparent[kTraceAt - 1] != '-' || traceparent[kSpanAt - 1] != '-') {
    return {};
  }
  const std::string_view id = traceparent.substr(kTraceAt, kTraceDigits);
  return is_lower_hex(id) && id.find_first_not_of('0') != std::string_view::npos ? id : std::string_view();
}

// Returns the span that the field names, or nothing for a field that must be ignored by the specification. For a later
// version only its first four parts are parsed (§3.2.2.5).
inline std::optional<SpanParent> parse_traceparent(std::string_view text) {
  using namespace detail;
  const std::string_view trace = trace_id(text);
  if (trace.empty() || text[kFlagsAt - 1] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view span = text.substr(kSpanAt, kSpanDigits);
  const std::string_view flags = text.substr(kFlagsAt, 2);
  if (!is_lower_hex(version) || version == "ff" || !is_lower_hex(span) || !is_lower_hex(flags)) return std::nullopt;
  const bool more = text.size() > kTraceParentSize;
  if (more && (version == "00" || text[kTraceParentSize] != '-')) return std::nullopt;
  SpanParent parent;
  parent.trace = {value_of_hex(trace.substr(0, 16)), value_of_hex(trace.substr(16))};
  parent.span = value_of_hex(span);
  parent.flags = static_cast<std::uint8_t>(value_of_hex(flags));
  if (parent.span == 0) return std::nullopt;
  return parent;
}

// Returns the field that names the span `span` of this trace.
inline TraceParentText write_traceparent(const TraceId& trace, std::uint64_t span, std::uint8_t flags) {
  using namespace detail;
  TraceParentText text;
  text.fill('-');
  write_hex(0, text.data(), 2);
  write_hex(trace.high, text.data() + kTraceAt, 16);
  write_hex(trace.low, text.data() + kTraceAt + 16, 16);
  write_hex(span, text.data() + kSpanAt, kSpanDigits);
  write_hex(flags, text.data() + kFlagsAt, 2);
  return text;
}

}  // namespace carpool::proxy
