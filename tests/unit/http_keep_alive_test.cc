// Unit tests of Keep-Alive: the idle timeout announced by an origin.
#include "proxy/http/keep_alive.h"

#include <gtest/gtest.h>

namespace carpool::proxy::http {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(KeepAliveField, NamesATimeoutInSeconds) {
  EXPECT_EQ(keep_alive_timeout("timeout=5"), seconds(5));
  EXPECT_EQ(keep_alive_timeout("timeout=5, max=1000"), seconds(5));
  EXPECT_EQ(keep_alive_timeout("max=100 , Timeout = 15 "), seconds(15));
  EXPECT_EQ(keep_alive_timeout("timeout=0"), seconds(0));
  EXPECT_EQ(keep_alive_timeout("timeout=99999999999"), hours(24)) << "a day is as good as for ever";
  EXPECT_EQ(keep_alive_timeout("timeout=86401"), hours(24));
}

TEST(KeepAliveField, IsNoHintWhereItDoesNotSay) {
  for (const auto* value :
       {"", "300", "max=100", "timeout", "timeout=", "timeout=x", "timeout=-1", "timeout=5s", ",,"}) {
    EXPECT_FALSE(keep_alive_timeout(value)) << value;
  }
}

}  // namespace
}  // namespace carpool::proxy::http
