// Which bytes may stand in the parts of a start line, as tables.
#pragma once

#include <array>
#include <string_view>

namespace carpool::proxy::http {

using CharTable = std::array<bool, 256>;

// RFC 9110 §5.6.2: methods and field names.
inline constexpr CharTable kToken = [] {
  CharTable table{};
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

// Everything that ends neither a line nor a word; what a path may hold besides is its origin's business.
inline constexpr CharTable kTarget = [] {
  CharTable table{};
  for (unsigned c = 0x21; c < 256; ++c) table[c] = c != 0x7F;
  return table;
}();

// RFC 9112 §4.
inline constexpr CharTable kReason = [] {
  CharTable table = kTarget;
  table[' '] = table['\t'] = true;
  return table;
}();

// The longest prefix of `text` that is made of these bytes.
inline std::string_view prefix_of(std::string_view text, const CharTable& table) {
  std::size_t end = 0;
  while (end < text.size() && table[static_cast<unsigned char>(text[end])]) ++end;
  return text.substr(0, end);
}

}  // namespace carpool::proxy::http
