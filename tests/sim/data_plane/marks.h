// Marks: each request has a token, and every byte of its bodies is a function of the token and the position alone, so a
// byte of another request, and one that is lost or duplicated, differs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace carpool::test {

inline constexpr std::string_view kMarkField = "x-of";
inline constexpr std::string_view kProofField = "x-proof";
inline constexpr std::string_view kTailField = "x-tail";  // a trailer
inline constexpr std::string_view kPadField = "x-pad";

inline std::string token_of(std::uint32_t request) {
  char text[16];
  std::snprintf(text, sizeof text, "r%05x", request);
  return text;
}
// A number derived from the token: noise that turns one token into another does not match it.
inline std::string proof_of(const std::string& token) {
  char text[16];
  const auto number = static_cast<std::uint32_t>(std::strtoul(token.c_str() + 1, nullptr, 16));
  std::snprintf(text, sizeof text, "%08x", (number + 1) * 2654435761U);
  return text;
}
// Returns the byte at this position of a body of `request`.
inline char mark_at(const std::string& token, std::uint64_t position) {
  const std::uint64_t row = position / 8;
  if (position % 8 < 6) return token[position % 8];
  return position % 8 == 6 ? static_cast<char>('A' + row % 26) : static_cast<char>('a' + row / 26 % 26);
}
inline std::string marked(const std::string& token, std::uint64_t size) {
  std::string bytes(size, '\0');
  for (std::uint64_t at = 0; at < size; ++at) bytes[at] = mark_at(token, at);
  return bytes;
}
// Returns true if these bytes are those from `position` on.
inline bool bears_mark(const std::string& token, std::uint64_t position, std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte != mark_at(token, position++)) return false;
  }
  return true;
}

}  // namespace carpool::test
