// Truncates UTF-8 text without splitting a character, and makes UTF-8 of any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carpool {

// Returns the first `most` bytes of `text`, without an incomplete UTF-8 character at the end.
inline std::string_view clipped(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  // A character has at most three continuation bytes; longer sequences are not UTF-8 and may be cut anywhere.
  for (int i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80; ++i) --end;
  const bool continues = (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80;
  return text.substr(0, continues ? most : end);
}

// Returns the size of the character at the front of `text`; 0: its first byte begins none (RFC 3629 §4).
inline std::size_t first_character(std::string_view text) {
  const auto byte = [text](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return text.empty() ? 0 : 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xC0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond U+10FFFF.
  const bool invalid = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                       (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return invalid ? 0 : size;
}

// Returns the code point of `character`, a whole character of UTF-8.
inline char32_t code_point(std::string_view character) {
  constexpr unsigned kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = static_cast<unsigned char>(character.front()) & kLeadBits[character.size()];
  for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return point;
}

// Returns the characters in the first `most` bytes of `text`, with '?' in place of each byte that is not UTF-8.
inline std::string as_utf8(std::string_view text, std::size_t most) {
  std::string out;
  text = clipped(text, most);
  while (!text.empty()) {
    const std::size_t size = first_character(text);
    if (size == 0) {
      out.push_back('?');
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

}  // namespace carpool
