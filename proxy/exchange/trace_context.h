// The trace id of a W3C trace context (https://www.w3.org/TR/trace-context/), for the access log and leak reports. The
// context itself is forwarded unchanged.
#pragma once

#include <algorithm>
#include <string_view>

namespace carpool::proxy {

// Parses "00-<32 digits>-<16 digits>-<2 digits>" of this or a later version. Returns an empty id if the field is
// malformed or names no trace.
inline std::string_view trace_id(std::string_view traceparent) {
  constexpr std::size_t kAt = 3, kSize = 32, kLeast = 55;
  if (traceparent.size() < kLeast || traceparent[2] != '-' || traceparent[kAt + kSize] != '-') return {};
  const std::string_view id = traceparent.substr(kAt, kSize);
  const bool hex =
      std::all_of(id.begin(), id.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && id.find_first_not_of('0') != std::string_view::npos ? id : std::string_view();
}

}  // namespace carpool::proxy
