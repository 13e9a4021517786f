// Unit tests of as_utf8(): any bytes become UTF-8, and UTF-8 stays as it is.
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace carpool {
namespace {

TEST(AsUtf8, KeepsEveryCharacterFromTheFirstToTheLastOfEachLength) {
  for (const std::string_view text :
       {std::string_view("\0", 1), std::string_view("\x7F"), std::string_view("\xC2\x80"), std::string_view("\xDF\xBF"),
        std::string_view("\xE0\xA0\x80"), std::string_view("\xED\x9F\xBF"), std::string_view("\xEE\x80\x80"),
        std::string_view("\xEF\xBF\xBF"), std::string_view("\xF0\x90\x80\x80"), std::string_view("\xF4\x8F\xBF\xBF")}) {
    EXPECT_EQ(as_utf8(text, 4), text);
  }
}

TEST(AsUtf8, ReplacesEachByteThatBelongsToNoCharacter) {
  EXPECT_EQ(as_utf8("a\x80z", 9), "a?z");
  EXPECT_EQ(as_utf8("\xC0\x80", 9), "??") << "overlong";
  EXPECT_EQ(as_utf8("\xC1\xBF", 9), "??") << "overlong";
  EXPECT_EQ(as_utf8("\xE0\x9F\xBF", 9), "???") << "overlong";
  EXPECT_EQ(as_utf8("\xF0\x8F\xBF\xBF", 9), "????") << "overlong";
  EXPECT_EQ(as_utf8("\xED\xA0\x80", 9), "???") << "a surrogate";
  EXPECT_EQ(as_utf8("\xF4\x90\x80\x80", 9), "????") << "beyond U+10FFFF";
  EXPECT_EQ(as_utf8("\xF5\x80\x80\x80", 9), "????") << "beyond U+10FFFF";
  EXPECT_EQ(as_utf8("\xC3z\xE2\x82", 9), "?z??") << "incomplete";
}

TEST(AsUtf8, EndsBetweenTwoCharacters) {
  EXPECT_EQ(as_utf8("\xE2\x82\xAC\xE2\x82\xAC", 5), "\xE2\x82\xAC");
  EXPECT_EQ(as_utf8("\xE2\x82\xAC", 2), "");
}

}  // namespace
}  // namespace carpool
