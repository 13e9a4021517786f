// Character tables: the bytes that are allowed in each part of a start line.
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

// Every byte except control characters and space; the origin decides what else a path may contain.
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

// RFC 9110 §5.6.3: OWS, without line folding.
inline bool white(char c) {
  return c == ' ' || c == '\t';
}

// Returns the longest prefix of `text` that consists of characters of `table`.
inline std::string_view prefix_of(std::string_view text, const CharTable& table) {
  std::size_t end = 0;
  while (end < text.size() && table[static_cast<unsigned char>(text[end])]) ++end;
  return text.substr(0, end);
}

}  // namespace carpool::proxy::http
