#include "proxy/http/line_ends.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "proxy/http/char_class.h"

namespace carpool::proxy::http {

namespace {
using Block = unsigned char __attribute__((vector_size(16)));

bool is_break(char c) {
  return c == '\r' || c == '\n';
}

// Returns the position of the first CR or LF of `text` at or after `at`, or its end. Compares 16 bytes at once.
std::size_t find_break(std::string_view text, std::size_t at) {
  static_assert(std::endian::native == std::endian::little, "the lowest byte of a half is the first of its text");
  for (; at + sizeof(Block) <= text.size(); at += sizeof(Block)) {
    Block bytes;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    const auto equal = (bytes == '\r') | (bytes == '\n');
    std::uint64_t halves[2];
    std::memcpy(halves, &equal, sizeof halves);
    if (halves[0] != 0) return at + static_cast<std::size_t>(std::countr_zero(halves[0])) / 8;
    if (halves[1] != 0) return at + 8 + static_cast<std::size_t>(std::countr_zero(halves[1])) / 8;
  }
  while (at < text.size() && !is_break(text[at])) ++at;
  return at;
}
}  // namespace

const char* LineEnds::check(std::string_view bytes) {
  if (bytes.empty()) return nullptr;
  std::size_t line = 0;  // the start of the current line
  if (before_ == '\r') {
    if (bytes.front() != '\n') return "a CR without LF";
    end_line();
    line = 1;
  }
  if (line < bytes.size() && (before_ == '\n' || line == 1) && white(bytes[line])) return "a folded field line";
  while (line < bytes.size()) {
    const std::size_t end = find_break(bytes, line);
    empty_ = empty_ && end == line;
    if (end == bytes.size()) break;
    if (bytes[end] == '\n') return "an LF without CR";
    if (end + 1 == bytes.size()) break;
    if (bytes[end + 1] != '\n') return "a CR without LF";
    end_line();
    line = end + 2;
    if (line < bytes.size() && white(bytes[line])) return "a folded field line";
  }
  before_ = bytes.back();
  return nullptr;
}

void LineEnds::end_line() {
  lines_ += empty_ ? 0 : 1;
  empty_ = true;
}

}  // namespace carpool::proxy::http
