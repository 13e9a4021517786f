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
