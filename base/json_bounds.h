// JsonBounds: limits on JSON from outside, checked before a library parses it, and output that does not throw on
// invalid UTF-8. A library's parser, and the destructors, copies and comparisons of its trees, may recurse per level,
// and a tree takes many times the memory of its text; one scan of the text bounds both.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace carpool {

struct JsonBounds {
  std::size_t depth = 64;       // nesting of arrays and objects
  std::size_t values = 100000;  // all values and names together
};

// Returns which bound the text exceeds and in which line; empty if none. Counts at least what a parser finds before its
// first error.
std::string exceeded_bound(std::string_view json, const JsonBounds& bounds);

// `Json` is a library's type (nlohmann's basic_json). A text above a bound is body_too_large.
template <class Json>
Result<Json> read_json(std::string_view text, const JsonBounds& bounds) {
  if (std::string error = exceeded_bound(text, bounds); !error.empty()) {
    return Fault{FaultKind::body_too_large, Side::client, std::move(error)};
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Fault{FaultKind::malformed_request, Side::client, "is not valid JSON"};
  return json;
}

// On one line, or with `indent` spaces per level.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace carpool
