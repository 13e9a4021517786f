// Unit tests of value syntax: durations, sizes, quoted strings, variables, and suggestions for misspelled names.
#include "proxy/config/text.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

#include "proxy/config/env.h"

namespace carpool::proxy::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Duration, IsAWholeNumberAndAUnit) {
  EXPECT_EQ(parse_duration("250ms"), milliseconds(250));
  EXPECT_EQ(parse_duration("30s"), seconds(30));
  EXPECT_EQ(parse_duration("10m"), minutes(10));
  EXPECT_EQ(parse_duration("1h"), hours(1));
  EXPECT_EQ(parse_duration("0s"), seconds(0));
  EXPECT_EQ(parse_duration("087600h"), kLongest);
  for (const auto wrong : {"", "s", "30", "0", "-1s", "+1s", " 1s", "1s ", "1 s", "1.5s", "1S", "1sec", "1d", "1us",
                           "1h30m", "0x1s", "87601h", "99999999999999999999s", "18446744073709551615ms"}) {
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
  }
}

TEST(Duration, IsPrintedAsItIsReadBest) {
  EXPECT_EQ(duration_text(seconds(60)), "60s");
  EXPECT_EQ(duration_text(seconds(90)), "90s");
  EXPECT_EQ(duration_text(minutes(5)), "5m");
  EXPECT_EQ(duration_text(minutes(60)), "1h");
  EXPECT_EQ(duration_text(milliseconds(1500)), "1500ms");
  EXPECT_EQ(duration_text(seconds(0)), "0s");
  for (const auto text : {"0s", "1ms", "60s", "61s", "2m", "1h", "87600h"}) {
    EXPECT_EQ(duration_text(*parse_duration(text)), text);
  }
}

TEST(Size, IsAWholeNumberOfBytesOrBinaryUnits) {
  EXPECT_EQ(parse_size("0"), 0U);
  EXPECT_EQ(parse_size("512"), 512U);
  EXPECT_EQ(parse_size("512B"), 512U);
  EXPECT_EQ(parse_size("16KiB"), 16384U);
  EXPECT_EQ(parse_size("1MiB"), 1048576U);
  EXPECT_EQ(parse_size("10GiB"), 10737418240U);
  for (const auto wrong :
       {"", "KiB", "16K", "16KB", "16kib", "16 KiB", "-1", "1.5MiB", "99999999999999999999", "9999999999GiB"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

TEST(Size, IsPrintedInTheLargestUnitThatFits) {
  for (const auto text : {"0", "1", "1023", "1KiB", "1025", "64KiB", "3MiB", "2GiB"})
    EXPECT_EQ(size_text(*parse_size(text)), text);
}

TEST(Quoted, EscapesTheSyntaxOfTomlAndOfVariables) {
  EXPECT_EQ(in_quotes("a\"b\\c\n\x7f"), R"("a\"b\\c\u000A\u007F")");
  EXPECT_EQ(in_quotes("${A} $ $${"), R"("$${A} $ $$${")");
}

TEST(Nearest, IsAtMostTwoEditsAway) {
  const std::array<std::string_view, 4> known{"size", "min_idle", "expire_time", "on"};
  EXPECT_EQ(nearest("sise", known), "size");
  EXPECT_EQ(nearest("siez", known), "size");
  EXPECT_EQ(nearest("minidle", known), "min_idle");
  EXPECT_EQ(nearest("expiretimes", known), "expire_time");
  EXPECT_EQ(nearest("min_idle_time", known), "");
  EXPECT_EQ(nearest("xy", known), "");  // any two letters are two edits from any other two
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

Env env_of(std::map<std::string, std::string> variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::string expanded(std::string text) {
  bool too_long = false;
  const std::string wrong = expand(text, env_of({{"A", "a"}, {"B_1", "${A}"}, {"EMPTY", ""}}), too_long);
  EXPECT_FALSE(too_long);
  return wrong.empty() ? text : "! " + wrong;
}

TEST(Environment, ReplacesVariablesAsAShellDoes) {
  EXPECT_EQ(expanded("plain $A $ {A}"), "plain $A $ {A}");
  EXPECT_EQ(expanded("<${A}>"), "<a>");
  EXPECT_EQ(expanded("${A}${A}-${A:-x}"), "aa-a");
  EXPECT_EQ(expanded("${NO:-default value}"), "default value");
  EXPECT_EQ(expanded("${NO:-}"), "");
  EXPECT_EQ(expanded("${EMPTY}|${EMPTY:-x}"), "|x");
  EXPECT_EQ(expanded("${A:?needed}"), "a");
}

TEST(Environment, DoesNotExpandVariablesRecursively) {
  EXPECT_EQ(expanded("${B_1}"), "${A}");
}

TEST(Environment, ReadsADoubledDollarAsAPlainOne) {
  EXPECT_EQ(expanded("$${A}"), "${A}");
  EXPECT_EQ(expanded("$${A} ${A}"), "${A} a");
  EXPECT_EQ(expanded("$$ $"), "$$ $");
}

TEST(Environment, RejectsUnsetVariablesAndBadSyntax) {
  EXPECT_NE(expanded("${NO}").find("NO is not set"), std::string::npos);
  EXPECT_NE(expanded("${NO:?give me one}").find("give me one"), std::string::npos);
  EXPECT_NE(expanded("${EMPTY:?give me one}").find("give me one"), std::string::npos);
  for (const auto text : {"${", "${A", "x${A:-"})
    EXPECT_NE(expanded(text).find("no closing brace"), std::string::npos) << text;
  for (const auto text : {"${}", "${1}", "${A-x}", "${A:+x}", "${A B}", "${ A}", "${-x}"}) {
    EXPECT_NE(expanded(text).find("not understood"), std::string::npos) << text << " became " << expanded(text);
  }
}

}  // namespace
}  // namespace carpool::proxy::config
