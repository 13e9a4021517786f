// Marks: each request has a token, and every byte of its bodies is a function of the token and the position alone, so a
// byte of another request, and one that is lost or duplicated, differs.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
// MarkRow: eight bytes of a body at a time, from any row on.
class MarkRow {
 public:
  static constexpr std::size_t kSize = 8;
  MarkRow(const std::string& token, std::uint64_t row) : column_(row % 26), turn_(row / 26 % 26) {
    std::array<char, kSize> bytes{};
    for (std::size_t n = 0; n < kSize; ++n) bytes[n] = mark_at(token, row * kSize + n);
    row_ = std::bit_cast<std::uint64_t>(bytes);
  }
  // Changes the eight bytes as one number: the processor would wait before it reads together what was written apart.
  void next() {
    row_ += kColumn;
    if (++column_ != 26) return;
    column_ = 0;
    row_ += kTurn - 26 * kColumn;
    if (++turn_ != 26) return;
    turn_ = 0;
    row_ -= 26 * kTurn;
  }
  const void* bytes() const { return &row_; }

 private:
  static constexpr auto kColumn = std::bit_cast<std::uint64_t>(std::array<char, kSize>{0, 0, 0, 0, 0, 0, 1, 0});
  static constexpr auto kTurn = std::bit_cast<std::uint64_t>(std::array<char, kSize>{0, 0, 0, 0, 0, 0, 0, 1});
  std::uint64_t row_ = 0, column_, turn_;
};
inline std::string marked(const std::string& token, std::uint64_t size) {
  std::string bytes(size, '\0');
  MarkRow row(token, 0);
  std::uint64_t at = 0;
  for (; at + MarkRow::kSize <= size; at += MarkRow::kSize, row.next())
    std::memcpy(bytes.data() + at, row.bytes(), MarkRow::kSize);
  std::memcpy(bytes.data() + at, row.bytes(), size - at);
  return bytes;
}
// Returns true if these bytes are those from `position` on.
inline bool bears_mark(const std::string& token, std::uint64_t position, std::string_view bytes) {
  for (; position % MarkRow::kSize != 0 && !bytes.empty(); bytes.remove_prefix(1)) {
    if (bytes.front() != mark_at(token, position++)) return false;
  }
  MarkRow row(token, position / MarkRow::kSize);
  for (; bytes.size() >= MarkRow::kSize; bytes.remove_prefix(MarkRow::kSize), row.next()) {
    if (std::memcmp(bytes.data(), row.bytes(), MarkRow::kSize) != 0) return false;
  }
  return std::memcmp(bytes.data(), row.bytes(), bytes.size()) == 0;
}

}  // namespace carpool::test
