// Unit tests of log lines: both formats, and that external data cannot break out of its field.
#include "proxy/telemetry/log_line.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

namespace carpool::proxy::log {
namespace {

const WallTime kThen = WallTime(std::chrono::milliseconds(1763717400123));  // 2025-11-21T09:30:00.123Z

std::string line_of(Format format, Fields fields) {
  std::string out;
  Line line(out, format, kThen, "warn", "pool");
  line.message("origin is slow");
  for (const Field& field : fields) line.field(field);
  line.end();
  return out;
}

TEST(Line, IsOneJsonObjectInJsonFormat) {
  EXPECT_EQ(
      line_of(Format::json, {{"origin", "http://a"}, {"waiting", 3}, {"limit", 4U}, {"share", 0.5}, {"full", true}}),
      R"({"time":"2025-11-21T09:30:00.123Z","level":"warn","module":"pool","message":"origin is slow",)"
      R"("origin":"http://a","waiting":3,"limit":4,"share":0.5,"full":true})"
      "\n");
}

TEST(Line, HasNoFieldWhoseValueIsNotKnown) {
  const std::optional<std::int64_t> known(7), unknown;
  const std::string name = "a";
  const Fields fields{{"pid", known}, {"uid", unknown}, {"user", unless_empty(name)}, {"trace_id", unless_empty("")}};
  EXPECT_TRUE(line_of(Format::json, fields)
                  .ends_with(R"("message":"origin is slow","pid":7,"user":"a"})"
                             "\n"));
  EXPECT_TRUE(line_of(Format::text, fields).ends_with("origin is slow pid=7 user=a\n"));
}

TEST(Line, ReadsWellInTextFormat) {
  EXPECT_EQ(
      line_of(Format::text, {{"origin", "http://a"}, {"why", "no place"}, {"none", ""}, {"waiting", -3}}),
      "2025-11-21T09:30:00.123Z warn  pool: origin is slow origin=http://a why=\"no place\" none=\"\" waiting=-3\n");
}

TEST(Line, LetsNoValueEndALineForgeAFieldOrColourATerminal) {
  const std::string evil = "a\"}\r\n{\"level\":\"error\" \x1b[31m\\ \x7f \xc3\xa9";
  EXPECT_EQ(line_of(Format::json, {{"target", evil}}),
            R"({"time":"2025-11-21T09:30:00.123Z","level":"warn","module":"pool","message":"origin is slow",)"
            R"("target":"a\"}\u000d\n{\"level\":\"error\" \u001b[31m\\ \u007f \u00e9"})"
            "\n");
  const std::string text = line_of(Format::text, {{"target", evil}});
  EXPECT_EQ(text.find_first_of("\r\x1b\x7f"), std::string::npos);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(Line, EscapesCharactersByTheirNumberAndOtherBytesOneByOne) {
  const auto escaped = [](std::string_view text) {
    std::string out;
    append_escaped(out, text);
    return out;
  };
  EXPECT_EQ(escaped("f\xc3\xbcnf \xe2\x80\xa6 \xf0\x9f\x98\x80 \xef\xbf\xbf \xf4\x8f\xbf\xbf"),
            R"(f\u00fcnf \u2026 \ud83d\ude00 \uffff \udbff\udfff)");
  EXPECT_EQ(escaped("\xc2\x9b"), R"(\u009b)") << "a control character of terminals";
  EXPECT_EQ(escaped("\xff\xc3 \xe2\x80"), R"(\u00ff\u00c3 \u00e2\u0080)") << "incomplete";
  EXPECT_EQ(escaped("\xc0\x8a\xed\xa0\x80"), R"(\u00c0\u008a\u00ed\u00a0\u0080)") << "overlong, a surrogate";
}

TEST(Line, WritesNumbersThatJsonDoesNotKnowAsNull) {
  EXPECT_NE(line_of(Format::json, {{"x", std::numeric_limits<double>::infinity()}}).find("\"x\":null"),
            std::string::npos);
}

TEST(Line, WritesTimesInSecondsToTheMicrosecondAndNeverNegative) {
  std::string out;
  Line line(out, Format::text, kThen, "info", "x");
  line.seconds("a", std::chrono::nanoseconds(1'000'042'999));
  line.seconds("b", std::chrono::nanoseconds(-1));
  EXPECT_EQ(out, "2025-11-21T09:30:00.123Z info  x a=1.000042 b=0.000000");
}

}  // namespace
}  // namespace carpool::proxy::log
