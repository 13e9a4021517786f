// Unit tests of the nesting limit: deeper input is rejected before the parser sees it, all other input is parsed.
#include "proxy/config/nesting.h"

#include <random>

// As in read.cc: its assertions fire on bad input.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include "config_helpers.h"
#include "proxy/config/read_overlay.h"

namespace carpool::proxy::config {
namespace {

std::string times(std::size_t count, std::string_view piece) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}

std::vector<std::string> deep_texts(std::size_t levels) {
  return {
      "x = " + times(levels, "["),
      "x = " + times(levels, "[") + times(levels, "]"),
      "x = " + times(levels, "{a="),
      "x = " + times(levels, "{a = [ # {\n") + times(levels, "] }"),
      times(levels, "a.") + "b = 1",
      times(levels, " 'a' .\t") + "b = 1",
      "[" + times(levels, "a.") + "b]",
      "[[" + times(levels, "\"a\" . ") + "b]]",
      "[pool]\nx = {" + times(levels, "a.") + "b = 1}",
      "x = [{a = 1, " + times(levels, "a.") + "b = 1}]",
      "\xEF\xBB\xBF"
      "x = '\"' # \"\ny = \"\"\"\"\" \\\"\"\" \"\"\"\"\"\nz = " +
          times(levels, "["),
      "s = '''\n''''' # '\n[" + times(levels, "a.") + "b]",
  };
}

TEST(Nesting, IsRefusedWithItsPlaceBeforeTheParserSeesIt) {
  for (const std::size_t levels : {std::size_t{17}, std::size_t{100000}}) {
    for (const std::string& text : deep_texts(levels)) {
      const Reading reading = read_toml(text);
      ASSERT_EQ(reading.errors.size(), 1U) << text.substr(0, 40);
      EXPECT_EQ(reading.errors.front().text, "nests deeper than 16 levels, expected at most that")
          << text.substr(0, 40);
    }
  }
  expect_error("[pool]\nsize = 3\n[a.b]\nx = " + times(20, "["), "4:19: syntax: nests deeper", "");
}

TEST(Nesting, IsRefusedInAnOverlayAndInItsBase) {
  for (const std::string& text : deep_texts(100000)) {
    const Result<std::string> over = overlay("[pool]\nsize = 3\n", text);
    ASSERT_FALSE(over) << text.substr(0, 40);
    EXPECT_NE(over.fault().detail.find("nests deeper than 16 levels"), std::string::npos) << over.fault().detail;
    EXPECT_FALSE(overlay(text, ""));
  }
}

TEST(Nesting, InsideTextsAndCommentsIsNone) {
  const std::string deep = times(50, "[{a.");
  EXPECT_FALSE(deeper_than("# " + deep + "\nx = \"" + deep + "\\\"" + deep + "\"\ny = '" + deep + "\\'", 4));
  EXPECT_FALSE(deeper_than("x = \"\"\"" + deep + "\n\"\" \\\"\"\"\" # " + deep + "\ny = '''" + deep + "''\n'''''", 4));
  EXPECT_FALSE(deeper_than("\"" + deep + "\" = 1.5\nx = [1.5, 2.5, [3.5]]\ny = {\"" + deep + "\" = 1.5, b = 2.5}", 4));
}

TEST(Nesting, OfValuesOneAfterTheOtherDoesNotAddUp) {
  EXPECT_FALSE(deeper_than(times(1000, "x = [{a.b = 1, c.d = [2]}, {}]\n[a.b]\n[[c]]\n"), 7));
}

std::size_t depth_of(const toml::node& node) {
  std::size_t most = 0;
  if (const auto* table = node.as_table()) {
    for (auto&& [key, child] : *table) most = std::max(most, depth_of(child));
  } else if (const auto* array = node.as_array()) {
    for (const toml::node& child : *array) most = std::max(most, depth_of(child));
  } else {
    return 0;
  }
  return most + 1;
}

// For any text that the parser accepts, its tree is no deeper than the pre-pass counted (an array of tables is two
// containers to one level of a header).
TEST(Nesting, IsNeverCountedLessThanTheParserFinds) {
  const std::vector<std::string> pieces{"a",   "b.",  ".",     "[",    "[[", "]",      "]]",   "{",  "}", "=",
                                        " = ", ",",   "\n",    "\"",   "'",  "\"\"\"", "'''",  "\\", "#", "1",
                                        "1.5", "'a'", "\"a\"", "x = ", " ",  "\r\n",   "\"\"", "''"};
  std::mt19937 random(7);
  std::size_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = random() % 2 == 0 ? "a = " : "";
    for (std::size_t i = random() % 24; i > 0; --i) text += pieces[random() % pieces.size()];
    constexpr unsigned kMax = 3;
    if (deeper_than(text, kMax)) continue;
    try {
      const toml::table root = toml::parse(text);
      ++read;
      ASSERT_LE(depth_of(root), 1 + 2 * kMax) << text;
    } catch (const toml::parse_error&) {
      continue;
    }
  }
  EXPECT_GT(read, 100U);
}

TEST(Errors, AreToldUpToAHundredAndShortened) {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "k" + std::to_string(i) + " = 1\n";
  const Reading reading = read_toml(many);
  ASSERT_EQ(reading.errors.size(), 101U);
  EXPECT_EQ(reading.errors.back().text, "has more errors, expected none");
  const Reading longest = read_toml(times(500000, "k") + " = 1\n");
  ASSERT_EQ(longest.errors.size(), 1U);
  EXPECT_LT(longest.errors.front().line_text().size(), 2000U);
}

// Returns true if every character is complete, for characters of up to three bytes.
bool whole(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = byte(i) < 0x80 ? 1 : byte(i) < 0xC0 ? 0 : byte(i) < 0xE0 ? 2 : 3;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80) return false;
    }
    if (length == 0) return false;
    i += length;
  }
  return true;
}

TEST(Errors, CutNoCharacterInTwo) {
  for (std::size_t ascii = 70; ascii < 84; ++ascii) {
    const std::string bad = times(ascii, "a") + times(20, "é");
    for (const std::string& text :
         {"[log]\nlevel = \"" + bad + "\"", "[pool]\nidle_timeout = \"" + bad + "\"",
          "[[origin]]\nuri = \"http://" + bad + "/\"", "[egress]\ndeny = [\"" + bad + ":x\"]"}) {
      for (const ConfigError& error : read_toml(text).errors) {
        EXPECT_TRUE(whole(error.text)) << error.text;
      }
    }
  }
}

TEST(Expansion, IsBounded) {
  const Env longer = [](std::string_view) { return std::optional<std::string>(std::string(60000, '[')); };
  const Reading once = read_text("[log]\nlevel = \"${A}\"", "c.toml", longer);
  ASSERT_EQ(once.errors.size(), 1U);
  EXPECT_LT(once.errors.front().text.size(), 300U) << "what a variable holds is a text, whatever stands in it";
  const Reading often = read_text("[log]\nlevel = \"" + times(20000, "${A}") + "\"", "c.toml", longer);
  ASSERT_EQ(often.errors.size(), 1U);
  EXPECT_NE(often.errors.front().text.find("expands to more than 65536 bytes"), std::string::npos);
  EXPECT_EQ(often.met, (std::array<bool, 4>{false, false, true, false}));
}

}  // namespace
}  // namespace carpool::proxy::config
