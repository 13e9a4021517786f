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

Block where(Block bytes, char c) {
  return reinterpret_cast<Block>(bytes == static_cast<unsigned char>(c));
}

// A block of bytes with the two before each. `suspect` has bits where a break is bare or a line is folded, `lines`
// counts in each lane the ends of lines that are not empty.
struct Look {
  Block suspect{};
  Block lines{};
  void at(const char* position, Block considered) {
    const Block here = load(position);
    const Block before = load(position - 1);
    const Block ends = where(here, '\n');
    const Block folds = where(before, '\n') & (where(here, ' ') | where(here, '\t'));
    suspect |= ((ends ^ where(before, '\r')) | folds) & considered;
    lines -= ends & ~where(load(position - 2), '\n') & considered;
  }
  static Block load(const char* position) {
    Block bytes;
    std::memcpy(&bytes, position, sizeof bytes);
    return bytes;
  }
  bool any_suspect() const {
    std::uint64_t halves[2];
    std::memcpy(halves, &suspect, sizeof halves);
    return (halves[0] | halves[1]) != 0;
  }
  std::uint32_t count() const {
    std::uint64_t halves[2];
    std::memcpy(halves, &lines, sizeof halves);
    constexpr std::uint64_t kEven = 0x00FF'00FF'00FF'00FF;
    const std::uint64_t pairs =
        (halves[0] & kEven) + (halves[0] >> 8 & kEven) + (halves[1] & kEven) + (halves[1] >> 8 & kEven);
    return static_cast<std::uint32_t>(pairs * 0x0001'0001'0001'0001 >> 48);
  }
};

constexpr std::size_t kBefore = 2;        // bytes that a block needs before it
constexpr std::size_t kMostBlocks = 255;  // that a lane can count

const Block kAll = ~Block{};
const Block kLane{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Examines the bytes after the first two. Most sections are without a fault, so there is no branch for a byte or a
// line.
Look look_over(std::string_view part) {
  Look look;
  std::size_t at = kBefore;
  for (; at + sizeof(Block) <= part.size(); at += sizeof(Block)) look.at(part.data() + at, kAll);
  if (at < part.size()) {  // the last block overlaps the one before
    const std::size_t from = part.size() - sizeof(Block);
    look.at(part.data() + from, reinterpret_cast<Block>(kLane >= static_cast<unsigned char>(at - from)));
  }
  return look;
}
}  // namespace

const char* LineEnds::check(std::string_view bytes) {
  while (bytes.size() >= kBefore + sizeof(Block)) {
    const std::string_view part = bytes.substr(0, kBefore + kMostBlocks * sizeof(Block));
    if (const char* wrong = check(part.substr(0, kBefore))) return wrong;
    const Look look = look_over(part);
    if (look.any_suspect()) {  // line by line: to say what is wrong
      bytes.remove_prefix(kBefore);
      break;
    }
    lines_ += look.count();
    before_ = part.back();
    empty_ = before_ == '\n' || (before_ == '\r' && part[part.size() - 2] == '\n');
    bytes.remove_prefix(part.size());
  }
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
