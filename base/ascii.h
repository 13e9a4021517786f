// ASCII text, independent of the locale: case, hexadecimal digits, decimal numbers.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace carpool {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

// Returns the value of a hexadecimal digit, or -1.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = ascii_lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

inline constexpr std::string_view kLowerHex = "0123456789abcdef", kUpperHex = "0123456789ABCDEF";

// Appends the byte as two digits.
inline void append_hex(std::string& out, char byte, std::string_view digits = kLowerHex) {
  const auto value = static_cast<unsigned char>(byte);
  out.push_back(digits[value >> 4U]);
  out.push_back(digits[value & 15U]);
}

// Returns the decimal number that the whole text spells; nullopt if it is not one, or does not fit into T.
template <std::integral T>
std::optional<T> number_in(std::string_view text) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace carpool
