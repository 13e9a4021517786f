// From what was written to the value of a setting, or to the sentence that says why not. Knows no TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proxy/config/env.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {

struct Other {
  std::string_view what;  // "a table", "a date or time": nothing that a setting takes
};
using RawItem = std::variant<std::string, std::int64_t, Other>;
using RawList = std::vector<RawItem>;
using Raw = std::variant<bool, std::int64_t, std::string, RawList, Other>;

// "the integer 30", "the text \"x\"", "a table".
std::string raw_text(const Raw& raw);
// ${ENV} in every text. What is wrong, or empty.
std::string expand_all(Raw& raw, const Env& env, bool& too_long);
// Returns an error text with the expected format, or empty and sets `value`. On entry `value` must hold one of the
// right type.
std::string convert(const Setting& setting, Raw raw, Value& value);
// Returns an error text for a key that `section` does not have, with the most similar one.
std::string unknown_key(const Section& section, std::string_view key);

}  // namespace carpool::proxy::config
