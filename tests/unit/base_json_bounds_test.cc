// Unit tests of json_bounds: limits checked before parsing, and cuts at character boundaries.
#include "base/json_bounds.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/contents.h"
#include "base/utf8.h"

namespace carpool {
namespace {

constexpr JsonBounds kFew{3, 20};

TEST(JsonBounds, CountStructureAndNotText) {
  EXPECT_EQ(exceeded_bound(R"({"a": [{"b": "[[[[{{{{\"[[["}], "c\\": "{"})", kFew), "");
  EXPECT_EQ(exceeded_bound("[[[1]],\n[[[[1", kFew), "nests deeper than 3 levels (line 2)");
  EXPECT_EQ(exceeded_bound(R"({"a":{"b":{"c":{)", kFew), "nests deeper than 3 levels (line 1)");
  EXPECT_EQ(exceeded_bound(std::string(3000000, '['), kFew), "nests deeper than 3 levels (line 1)");
}

TEST(JsonBounds, CountValuesBesideEachOther) {
  EXPECT_EQ(exceeded_bound("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]", kFew), "");
  EXPECT_EQ(exceeded_bound("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]", kFew),
            "has more than 20 values (line 1)");
  EXPECT_EQ(exceeded_bound("[][][][][][][][][][][][][][][][][][][][][]", kFew), "has more than 20 values (line 1)");
}

TEST(JsonBounds, TakeWhatBreaksOff) {
  for (const char* text : {"", "\"", "\"\\", "{\"a", "]]]]}}}}", "[\"\\\""})
    EXPECT_EQ(exceeded_bound(text, kFew), "") << text;
}

TEST(Clipped, KeepsWholeCharacters) {
  const std::string_view text = "aé€𝄞";  // 1, 2, 3, 4 bytes
  for (std::size_t most = 0; most < text.size() + 2; ++most) {
    const std::size_t whole = most < 1 ? 0 : most < 3 ? 1 : most < 6 ? 3 : most < 10 ? 6 : 10;
    EXPECT_EQ(clipped(text, most), text.substr(0, whole)) << most;
  }
  EXPECT_EQ(clipped("\x80\x80\x80\x80\x80\x80", 4).size(), 4U) << "no UTF-8: cut anywhere";
}

TEST(Contents, AreReadUpToABound) {
  const std::string path = testing::TempDir() + "contents";
  std::ofstream(path) << std::string(100000, 'x');
  EXPECT_EQ((*contents(path, 100000)).size(), 100000U);
  EXPECT_EQ(contents(path, 99999).fault().detail, "it is longer than 99999 bytes");
  EXPECT_FALSE(contents("/dev/zero", 1000));
  EXPECT_EQ(contents(path + ".none", 1000).fault().detail, "No such file or directory");
  EXPECT_EQ(contents("/", 1000).fault().detail, "is a directory");
}

}  // namespace
}  // namespace carpool
