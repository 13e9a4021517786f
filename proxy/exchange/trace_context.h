// What carpool reads of a W3C trace context (https://www.w3.org/TR/trace-context/): the trace's id, to name it in the
// log and among leaks. The context itself passes as it came.
#pragma once

#include <algorithm>
#include <string_view>

namespace carpool::proxy {

// "00-<32 digits>-<16 digits>-<2 digits>", of this version or a later one; empty: it is none, or names no trace.
inline std::string_view trace_id(std::string_view traceparent) {
  constexpr std::size_t kAt = 3, kSize = 32, kLeast = 55;
  if (traceparent.size() < kLeast || traceparent[2] != '-' || traceparent[kAt + kSize] != '-') return {};
  const std::string_view id = traceparent.substr(kAt, kSize);
  const bool hex =
      std::all_of(id.begin(), id.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && id.find_first_not_of('0') != std::string_view::npos ? id : std::string_view();
}

}  // namespace carpool::proxy
