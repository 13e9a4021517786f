// Unit tests of dates in field values: what is parsed and what is written.
#include "proxy/http/http_date.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
constexpr sys_seconds kDateExample{seconds(784111777)};

TEST(ADate, IsReadInEachOfItsThreeFormats) {
  EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), kDateExample);
  EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT"), kDateExample);
  EXPECT_EQ(parse_date("Sun Nov  6 08:49:37 1994"), kDateExample);
  EXPECT_EQ(parse_date("Sun Nov 16 08:49:37 1994"), kDateExample + std::chrono::days(10));
  EXPECT_EQ(parse_date("Thu, 29 Feb 2024 23:59:60 GMT"), parse_date("Fri, 01 Mar 2024 00:00:00 GMT"));
  EXPECT_EQ(parse_date("Monday, 01-Jan-35 00:00:00 GMT"), parse_date("Mon, 01 Jan 2035 00:00:00 GMT"));
}

TEST(ADate, IsNothingElse) {
  for (const std::string_view text :
       {"", "Sun", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, -6 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "Sun Nov   6 08:49:37 1994"}) {
    EXPECT_FALSE(parse_date(text)) << text;
  }
  EXPECT_FALSE(parse_date(std::string(100000, 'S')));
}

TEST(ADate, IsWrittenInThePreferredFormat) {
  EXPECT_EQ(date_text(kDateExample), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_text(sys_seconds()), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date_text(sys_seconds(seconds(-1))), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(date_text(kDateExample + milliseconds(999)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_text(sys_seconds(seconds(951'827'696))), "Tue, 29 Feb 2000 12:34:56 GMT");
}

TEST(ADate, ThatIsWrittenIsReadAsTheSameTime) {
  constexpr seconds kStep(86'400 * 3 + 3'671);  // through all days, months, hours, minutes and seconds
  for (sys_seconds time = kDateExample; time < kDateExample + std::chrono::years(60); time += kStep) {
    ASSERT_EQ(parse_date(date_text(time)), time) << date_text(time);
  }
}

}  // namespace
}  // namespace carpool::proxy::http
