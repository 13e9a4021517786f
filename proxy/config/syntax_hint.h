// value_without_quotes(): finds the most frequent syntax error, a text, duration or size without its quotes. The parser
// only reports the unexpected character.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

struct SyntaxHint {
  Place place;  // of the value
  std::string text;
  std::string corrected;  // the whole file with the corrected value
};

// `at`: where the parser stopped. Returns nullopt if its line is not `key = VALUE` with a value that needs quotes.
std::optional<SyntaxHint> value_without_quotes(std::string_view toml, Place at);

// Returns the line with that number, from 1; empty if there is none.
std::string_view line_of(std::string_view toml, unsigned number);

// Returns the parser's description of an error without the number that it quotes: it may be a secret without quotes.
std::string without_value(std::string_view description);

}  // namespace carpool::proxy::config
