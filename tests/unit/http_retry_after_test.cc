// Unit tests of Retry-After: the pauses that it may request, and invalid values.
#include "proxy/http/retry_after.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
constexpr sys_seconds kExample{seconds(784111777)};

std::optional<Duration> wait(std::string_view value, std::string_view date = {}, sys_seconds wall = kExample) {
  Fields fields;
  fields.add("Retry-After", value);
  if (!date.empty()) fields.add("Date", date);
  return retry_after(fields, wall);
}

TEST(ADate, IsReadInEachOfItsThreeFormats) {
  EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), kExample);
  EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT"), kExample);
  EXPECT_EQ(parse_date("Sun Nov  6 08:49:37 1994"), kExample);
  EXPECT_EQ(parse_date("Sun Nov 16 08:49:37 1994"), kExample + std::chrono::days(10));
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

TEST(RetryAfter, IsANumberOfSecondsOrADate) {
  EXPECT_EQ(wait("120"), seconds(120));
  EXPECT_EQ(wait("Sun, 06 Nov 1994 08:50:37 GMT"), seconds(60));
}

TEST(RetryAfter, CountsADateFromTheDateOfItsResponse) {
  EXPECT_EQ(wait("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:50:30 GMT", kExample + std::chrono::days(9)),
            seconds(7));
  EXPECT_EQ(wait("Sun, 06 Nov 1994 08:50:37 GMT", "yesterday"), seconds(60));
}

TEST(RetryAfter, AsksForNothingByATimeThatIsNotToComeOrByNoTime) {
  for (const std::string_view value : {"0", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:36 GMT", "-1",
                                       "+5", "1.5", "5s", "soon", "", " ", "1 2"}) {
    EXPECT_FALSE(wait(value)) << value;
  }
  EXPECT_FALSE(retry_after(Fields(), kExample));
}

TEST(RetryAfter, BoundsANumberOfAnyLength) {
  EXPECT_EQ(wait("99999999999"), seconds(2'147'483'648));
  EXPECT_EQ(wait(std::string(60, '9')), seconds(2'147'483'648));
  EXPECT_FALSE(wait(std::string(100000, '9')));
}

}  // namespace
}  // namespace carpool::proxy::http
