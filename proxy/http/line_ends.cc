#include "proxy/http/line_ends.h"

#include <cstdint>
#include <cstring>

#include "proxy/http/byte_block.h"
#include "proxy/http/char_class.h"

namespace carpool::proxy::http {

namespace {
bool is_break(char c) {
  return c == '\r' || c == '\n';
}

// Returns the position of the first CR or LF of `text` at or after `at`, or its end. Compares 16 bytes at once.
std::size_t find_break(std::string_view text, std::size_t at) {
  for (; at + sizeof(Block) <= text.size(); at += sizeof(Block)) {
    const Block bytes = load_block(text.data() + at);
    const std::size_t found = first_set(where(bytes, '\r') | where(bytes, '\n'));
    if (found != sizeof(Block)) return at + found;
  }
  while (at < text.size() && !is_break(text[at])) ++at;
  return at;
}

// A block of bytes with the two before each. `suspect` has bits where a break is bare or a line is folded, `lines`
// counts in each lane the ends of lines that are not empty.
struct BlockScan {
  Block suspect{};
  Block lines{};
  void at(const char* position, Block considered) {
    const Block here = load_block(position);
    const Block before = load_block(position - 1);
    const Block ends = where(here, '\n');
    const Block folds = where(before, '\n') & (where(here, ' ') | where(here, '\t'));
    suspect |= ((ends ^ where(before, '\r')) | folds) & considered;
    lines -= ends & ~where(load_block(position - 2), '\n') & considered;
  }
  bool any_suspect() const { return any_set(suspect); }
  std::uint32_t count() const {
    std::uint64_t halves[2];
    std::memcpy(halves, &lines, sizeof halves);
    constexpr std::uint64_t kEven = 0x00FF'00FF'00FF'00FF;
    const std::uint64_t pairs =
        (halves[0] & kEven) + (halves[0] >> 8 & kEven) + (halves[1] & kEven) + (halves[1] >> 8 & kEven);
    return static_cast<std::uint32_t>(pairs * 0x0001'0001'0001'0001 >> 48);
  }
};

constexpr std::size_t kBefore = 2;       // bytes that a block needs before it
constexpr std::size_t kMaxBlocks = 255;  // that a lane can count

const Block kAll = ~Block{};
const Block kLane{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Examines the bytes after the first two. Most sections are without a fault, so there is no branch for a byte or a
// line.
BlockScan scan_blocks(std::string_view part) {
  BlockScan scan;
  std::size_t at = kBefore;
  for (; at + sizeof(Block) <= part.size(); at += sizeof(Block)) scan.at(part.data() + at, kAll);
  if (at < part.size()) {  // the last block overlaps the one before
    const std::size_t from = part.size() - sizeof(Block);
    scan.at(part.data() + from, reinterpret_cast<Block>(kLane >= static_cast<unsigned char>(at - from)));
  }
  return scan;
}
}  // namespace

const char* LineEnds::check(std::string_view bytes) {
  while (bytes.size() >= kBefore + sizeof(Block)) {
    const std::string_view part = bytes.substr(0, kBefore + kMaxBlocks * sizeof(Block));
    if (const char* error = check(part.substr(0, kBefore))) return error;
    const BlockScan scan = scan_blocks(part);
    if (scan.any_suspect()) {  // checks line by line to find the error
      bytes.remove_prefix(kBefore);
      break;
    }
    lines_ += scan.count();
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
