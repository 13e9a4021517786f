// Converts a raw value of the file to the value of a setting, or returns an error text. Independent of toml++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "proxy/config/env.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {

struct Other {
  std::string_view what;  // "a table", "a date or time": a type that no setting has
};
struct RawTable {
  std::vector<std::pair<std::string, std::string>> texts;  // its keys and values
  bool only_texts = true;                                  // it has no other values
};
using RawItem = std::variant<std::string, std::int64_t, Other>;
using RawList = std::vector<RawItem>;
using Raw = std::variant<bool, std::int64_t, std::string, RawList, RawTable, Other>;

// Returns the value as error texts show it: `the integer 30`, `"x"`, `a table`.
std::string raw_text(const Raw& raw);
// Expands ${ENV} in every text. Returns an error text, or empty.
std::string expand_all(Raw& raw, const Env& env, bool& too_long);
// Sets `secret` and returns empty, or returns an error text, which does not show the value.
std::string to_secret(Raw raw, Secret& secret);
// Sets `value` and returns empty, or returns an error text with the expected format. On entry `value` must hold a value
// of the setting's type.
std::string convert(const Setting& setting, Raw raw, Value& value);
// Returns an error text for a key that `section` does not have, with the most similar one.
std::string unknown_key(const Section& section, std::string_view key);

}  // namespace carpool::proxy::config
