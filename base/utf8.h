// clipped(): truncates UTF-8 text without splitting a character.
#pragma once

#include <cstddef>
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

}  // namespace carpool
