// Unit tests of which ejections of addresses are logged.
#include "proxy/upstream/health/address_monitor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proxy/net/address_set.h"

namespace carpool::proxy {
namespace {

using std::chrono::seconds;

class AnEjection : public ::testing::Test {
 protected:
  AnEjection() {
    addresses_.follow({.eject_after = 1, .eject_time = seconds(10)});
    addresses_.learn({address(1), address(2), address(3), address(4)}, now_);
  }
  static net::Address address(int n) { return *net::Address::literal("192.0.2." + std::to_string(n), 80); }
  void fail(int n) { addresses_.failed(address(n), now_); }
  std::vector<std::string> logged() {
    std::vector<std::string> names;
    for (const LoggedEjections::Ejection& one : logged_.update(addresses_, now_)) names.push_back(one.address);
    return names;
  }

  Instant now_{std::chrono::hours(1)};
  net::AddressSet addresses_;
  LoggedEjections logged_;
};

TEST_F(AnEjection, IsToldOnceThoughAnotherFollows) {
  EXPECT_TRUE(logged().empty());
  fail(1);
  EXPECT_EQ(logged(), std::vector<std::string>{"192.0.2.1:80"});
  fail(2);
  EXPECT_EQ(logged(), std::vector<std::string>{"192.0.2.2:80"}) << "the first one lasts, and was told";
  EXPECT_TRUE(logged().empty());
}

TEST_F(AnEjection, OfTheSameAddressIsToldAgain) {
  fail(1);
  EXPECT_EQ(logged().size(), 1U);
  now_ += seconds(20);
  EXPECT_TRUE(logged().empty());
  fail(1);
  EXPECT_EQ(logged(), std::vector<std::string>{"192.0.2.1:80"});
}

}  // namespace
}  // namespace carpool::proxy
