// JSON from outside: bounded before a library's parser sees it, and written without an exception for bytes that are no
// UTF-8. The parser of a library, its trees' destructors, copies and comparisons may recurse once a level, and a tree
// takes many times its text's memory; both are bounded here by one look at the text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace carpool {

struct JsonBounds {
  std::size_t depth = 64;       // arrays and objects inside each other
  std::size_t values = 100000;  // all values and names together
};

// Says which bound the text exceeds, and in which line; empty: none. Never less than a parser would find in the part
// of the text that it reads before its first error.
std::string beyond(std::string_view json, const JsonBounds& bounds);

// `Json` is a library's type (nlohmann's basic_json). A text beyond a bound is body_too_large.
template <class Json>
Result<Json> read_json(std::string_view text, const JsonBounds& bounds) {
  if (std::string wrong = beyond(text, bounds); !wrong.empty()) {
    return Fault{FaultKind::body_too_large, Side::client, std::move(wrong)};
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Fault{FaultKind::malformed_request, Side::client, "is no JSON"};
  return json;
}

// In one line, or with `indent` blanks a level.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace carpool
