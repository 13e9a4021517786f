// Unit tests of the check of line ends, against one that examines a byte at a time.
#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <string>
#include <string_view>

#include "proxy/http/line_ends.h"

namespace carpool::proxy::http {
namespace {

struct FoundEnds {
  std::string error;
  std::uint32_t lines = 0;
  bool operator==(const FoundEnds&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const FoundEnds& v) {
    return out << v.error << ", " << v.lines << " lines";
  }
};

// RFC 9112 §2.2 and §5.2, a byte at a time.
FoundEnds plainly(std::string_view text) {
  FoundEnds found;
  char before = '\n';
  bool empty = true;
  for (const char c : text) {
    if (before == '\r' && c != '\n') return {"a CR without LF", found.lines};
    if (before == '\n' && (c == ' ' || c == '\t')) return {"a folded field line", found.lines};
    if (c == '\n') {
      if (before != '\r') return {"an LF without CR", found.lines};
      found.lines += empty ? 0 : 1;
      empty = true;
    } else if (c != '\r') {
      empty = false;
    }
    before = c;
  }
  return found;
}

FoundEnds in_pieces(std::string_view text, std::size_t piece) {
  LineEnds ends;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const char* error = ends.check(text.substr(at, piece));
    if (error != nullptr) return {error, ends.lines()};
  }
  return {"", ends.lines()};
}

std::string random_text(std::mt19937& random) {
  std::string text;
  const std::size_t lines = random() % 6;
  for (std::size_t i = 0; i < lines; ++i) text.append(random() % 40, 'a').append("\r\n");
  text.append(random() % 40, 'b');
  if (random() % 2 == 0) return text;
  const std::string_view breaks = "\r\n \t\n";
  for (std::size_t i = 0; i < 1 + random() % 2; ++i) {
    text.insert(random() % (text.size() + 1), 1, breaks[random() % breaks.size()]);
  }
  return text;
}

TEST(HttpLineEnds, EveryTextInEverySplitIsJudgedAsByteByByte) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random_text(random);
    const FoundEnds expected = plainly(text);
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{2}, std::size_t{15}, std::size_t{17}, text.size() + 1}) {
      ASSERT_EQ(in_pieces(text, piece), expected) << "seed step " << i << ", pieces of " << piece << ": " << text;
    }
  }
}

TEST(HttpLineEnds, ALongSectionIsJudgedAsByteByByte) {
  std::mt19937 random(2);
  std::string text;
  while (text.size() < 20'000) text.append(random() % 40, 'a').append("\r\n");
  for (int i = 0; i < 200; ++i) {
    std::string bad = text;
    bad[random() % bad.size()] = "\r\n \ta"[random() % 5];
    for (const std::size_t piece : {std::size_t{4081}, std::size_t{4082}, std::size_t{4083}, bad.size()}) {
      ASSERT_EQ(in_pieces(bad, piece), plainly(bad)) << i << ", pieces of " << piece;
    }
  }
  EXPECT_EQ(in_pieces(text, text.size()), plainly(text));
}

TEST(HttpLineEnds, ALineOfOneByteIsCountedAndAnEmptyLineIsNot) {
  LineEnds ends;
  EXPECT_EQ(ends.check("a\r\n\r\n"), nullptr);
  EXPECT_EQ(ends.lines(), 1U);
}

}  // namespace
}  // namespace carpool::proxy::http
