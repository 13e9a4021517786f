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
struct RawList {};  // its items are read one by one
using Raw = std::variant<bool, std::int64_t, std::string, RawList, RawTable, Other>;

// Returns true if the text has a variable, `${`, that expand() replaces.
bool has_variable(std::string_view text);
// Replaces the text of an expanded variable by the number, true or false that it spells, where one is expected. Any
// other text stays, and convert() reports it.
void read_expanded(const Value& value, Raw& raw);
// Returns the value as error texts show it: `the integer 30`, `"x"`, `a table`.
std::string raw_text(const Raw& raw);
// Expands ${ENV} in a text, and in each text of a table. Returns an error text, or empty.
std::string expand_all(Raw& raw, const Env& env, bool& too_long);
// Sets `secret` and returns empty, or returns an error text, which does not show the value.
std::string to_secret(Raw raw, Secret& secret);
// Sets `value` and returns empty, or returns an error text with the expected format. On entry `value` must hold a value
// of the setting's type.
std::string convert(const Setting& setting, Raw raw, Value& value);
// Returns true if the value is a list, whose items convert_item() adds one by one.
bool is_list(const Value& value);
// Adds the item to `list`, a value of the setting's type, and returns empty; or returns an error text.
std::string convert_item(const Setting& setting, Raw item, Value& list);

}  // namespace carpool::proxy::config
