#include "proxy/net/egress_policy.h"

#include <ifaddrs.h>

#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

config::Egress egress(config::EgressAction verdict, std::vector<std::string> allow = {},
                      std::vector<std::string> deny = {}) {
  config::Egress out;
  out.default_ = verdict;
  out.allow = std::move(allow);
  out.deny = std::move(deny);
  return out;
}

std::unique_ptr<EgressPolicy> policy(const config::Egress& from) {
  auto made = EgressPolicy::make(from);
  EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
  return std::move(*made);
}

pool::Origin origin(std::string_view authority) {
  auto made = pool::canonical_origin(pool::Scheme::http, authority);
  EXPECT_TRUE(made) << authority;
  return *made;
}

bool may_ask(const EgressPolicy& rules, std::string_view authority) {
  return static_cast<bool>(rules.may_ask(origin(authority)));
}

bool may_dial(const EgressPolicy& rules, std::string_view authority, std::string_view at) {
  return static_cast<bool>(rules.may_dial(origin(authority), address(at)));
}

FaultKind refusal(const EgressPolicy& rules, std::string_view at) {
  const auto status = rules.may_dial(origin("name.test"), address(at));
  EXPECT_FALSE(status) << at;
  return status ? FaultKind::internal : status.fault().kind;
}

constexpr auto kAllow = config::EgressAction::allow;
constexpr auto kDeny = config::EgressAction::deny;

TEST(Policy, AllowsEverythingElseByDefault) {
  const auto rules = policy(egress(kAllow));
  EXPECT_TRUE(may_ask(*rules, "example.com"));
  EXPECT_TRUE(may_dial(*rules, "example.com", "10.0.0.1:80"));
  EXPECT_TRUE(may_dial(*rules, "example.com", "127.0.0.1:80"));
}

TEST(Policy, NeverDialsItsOwnListenersInAnySpelling) {
  const auto rules = policy(egress(kAllow, {"127.0.0.0/8", "::/0", "0.0.0.0/0", "*"}));
  rules->set_own_listeners({address("127.0.0.1:3128"), address("unix:/run/proxy.sock")});
  for (const char* spelling : {"127.0.0.1:3128", "[::ffff:127.0.0.1]:3128", "0.0.0.0:3128", "[::ffff:0.0.0.0]:3128",
                               "[::127.0.0.1]:3128", "[64:ff9b::7f00:1]:3128", "[2002:7f00:1::]:3128"}) {
    EXPECT_EQ(refusal(*rules, spelling), FaultKind::loop_detected) << spelling;
    EXPECT_TRUE(rules->is_own(address(spelling))) << spelling;
  }
  EXPECT_FALSE(rules->is_own(address("127.0.0.1:3129")));
  EXPECT_TRUE(may_dial(*rules, "name.test", "127.0.0.1:3129"));
  EXPECT_TRUE(may_dial(*rules, "name.test", "127.0.0.2:3128"));
}

TEST(Policy, KnowsAllAddressesOfTheMachineBehindAWildcardListener) {
  const auto rules = policy(egress(kAllow));
  rules->set_own_listeners({address("0.0.0.0:3128"), address("[::]:3129")});
  EXPECT_EQ(refusal(*rules, "127.0.0.1:3128"), FaultKind::loop_detected);
  EXPECT_EQ(refusal(*rules, "127.77.0.1:3128"), FaultKind::loop_detected);
  EXPECT_EQ(refusal(*rules, "[::1]:3129"), FaultKind::loop_detected);
  EXPECT_EQ(refusal(*rules, "127.0.0.1:3129"), FaultKind::loop_detected);  // a dual-stack socket accepts IPv4 too
  EXPECT_TRUE(may_dial(*rules, "name.test", "203.0.113.7:3128"));
  ifaddrs* all = nullptr;
  ASSERT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    const Address own = Address(at->ifa_addr, sizeof(sockaddr_in)).with_port(3128);
    EXPECT_EQ(refusal(*rules, own.text()), FaultKind::loop_detected);
  }
  ::freeifaddrs(all);
}

TEST(Policy, NeverDialsTheAdminAddress) {
  const auto rules = policy(egress(kAllow, {"127.0.0.1:9901", "*"}));
  rules->set_forbidden({address("127.0.0.1:9901"), address("0.0.0.0:9902")});
  EXPECT_EQ(refusal(*rules, "127.0.0.1:9901"), FaultKind::egress_denied);
  EXPECT_EQ(refusal(*rules, "[::ffff:7f00:1]:9901"), FaultKind::egress_denied);
  EXPECT_EQ(refusal(*rules, "127.0.0.1:9902"), FaultKind::egress_denied);
  EXPECT_TRUE(rules->is_own(address("127.0.0.1:9901")));
  EXPECT_TRUE(rules->is_own(address("[::ffff:127.0.0.1]:9902")));
  EXPECT_FALSE(may_ask(*rules, "127.1:9901"));
  EXPECT_FALSE(may_ask(*rules, "2130706433:9901"));
  EXPECT_FALSE(may_ask(*rules, "[::ffff:127.0.0.1]:9901"));
}

TEST(Policy, NeverDialsLinkLocalOrMetadataAddresses) {
  const auto rules = policy(egress(kAllow, {"*", "0.0.0.0/0", "::/0", "name.test"}));
  for (const char* metadata :
       {"169.254.169.254:80", "169.254.0.1:8080", "[fe80::1]:80", "[febf::1]:80", "[fd00:ec2::254]:80",
        "[::ffff:169.254.169.254]:80", "[::ffff:0:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80",
        "[2002:a9fe:a9fe::1]:80", "[::169.254.169.254]:80", "[fd00:ec2::23]:80", "[fd20:ce::254]:80",
        "100.100.100.200:80", "[::ffff:100.100.100.200]:80", "[64:ff9b::6464:64c8]:80", "[2002:6464:64c8::1]:80",
        "[::100.100.100.200]:80"}) {
    EXPECT_EQ(refusal(*rules, metadata), FaultKind::egress_denied) << metadata;
  }
  EXPECT_TRUE(may_dial(*rules, "name.test", "169.253.169.254:80"));
  EXPECT_TRUE(may_dial(*rules, "name.test", "[fec0::1]:80"));
  EXPECT_TRUE(may_dial(*rules, "name.test", "100.100.100.201:80"));
  EXPECT_TRUE(may_dial(*rules, "name.test", "[fd20:ce::253]:80"));
}

TEST(Policy, DialsAMetadataAddressThatAllowNames) {
  const auto rules = policy(egress(kAllow, {"169.254.169.254:80", "fe80::/10"}));
  EXPECT_TRUE(may_ask(*rules, "169.254.169.254"));
  EXPECT_TRUE(may_dial(*rules, "169.254.169.254", "169.254.169.254:80"));
  EXPECT_EQ(refusal(*rules, "169.254.169.254:81"), FaultKind::egress_denied);
  EXPECT_EQ(refusal(*rules, "169.254.169.253:80"), FaultKind::egress_denied);
  EXPECT_TRUE(may_dial(*rules, "name.test", "[fe80::1]:80"));
}

TEST(Policy, DenyWinsOverAllow) {
  const auto rules = policy(egress(kDeny, {"*.example.com", "10.0.0.0/8"}, {"bad.example.com", "10.9.0.0/16"}));
  EXPECT_TRUE(may_ask(*rules, "good.example.com"));
  EXPECT_FALSE(may_ask(*rules, "bad.example.com"));
  EXPECT_FALSE(may_dial(*rules, "bad.example.com", "10.0.0.1:80"));
  EXPECT_TRUE(may_dial(*rules, "good.example.com", "10.0.0.1:80"));
  EXPECT_FALSE(may_dial(*rules, "good.example.com", "10.9.0.1:80"));
  EXPECT_FALSE(may_dial(*rules, "good.example.com", "[::ffff:10.9.0.1]:80"));
  EXPECT_FALSE(may_dial(*rules, "good.example.com", "[64:ff9b::a09:1]:80"));
}

TEST(Policy, ANamedOriginMayHaveAnyAddressUnderDefaultDeny) {
  const auto rules = policy(egress(kDeny, {"*.example.com:443"}));
  EXPECT_TRUE(may_ask(*rules, "api.example.com:443"));
  EXPECT_TRUE(may_dial(*rules, "api.example.com:443", "192.0.2.1:443"));
  EXPECT_FALSE(may_dial(*rules, "api.example.com:443", "169.254.169.254:443"));
  EXPECT_FALSE(may_ask(*rules, "api.example.com:80"));
  EXPECT_FALSE(may_ask(*rules, "example.com:443"));
  EXPECT_FALSE(may_ask(*rules, "evilexample.com:443"));
}

TEST(Policy, AsksForNamesThatMayLieInAnAllowedNetwork) {
  const auto rules = policy(egress(kDeny, {"10.0.0.0/8:5432"}));
  EXPECT_TRUE(may_ask(*rules, "db.internal:5432"));
  EXPECT_FALSE(may_ask(*rules, "db.internal:80"));
  EXPECT_TRUE(may_dial(*rules, "db.internal:5432", "10.1.1.1:5432"));
  EXPECT_FALSE(may_dial(*rules, "db.internal:5432", "11.1.1.1:5432"));
  EXPECT_FALSE(may_ask(*rules, "11.1.1.1:5432"));
}

TEST(Policy, OnlyTellsWhatItWouldDenyWhileItReports) {
  config::Egress reporting = egress(kDeny, {"good.test"}, {"10.0.0.0/8"});
  reporting.report_only = true;
  const auto rules = policy(reporting);
  std::optional<Fault> reported;
  EXPECT_TRUE(rules->may_ask(origin("good.test"), &reported));
  EXPECT_FALSE(reported);
  EXPECT_TRUE(rules->may_ask(origin("other.test"), &reported));
  ASSERT_TRUE(reported);
  EXPECT_NE(reported->detail.find("other.test"), std::string::npos);
  EXPECT_TRUE(may_dial(*rules, "good.test", "10.1.1.1:80"));
  EXPECT_TRUE(rules->reported(origin("good.test"), address("10.1.1.1:80")));
  EXPECT_FALSE(rules->reported(origin("good.test"), address("192.0.2.1:80")));
}

TEST(Policy, LiftsNothingThatNoRuleLiftsWhileItReports) {
  config::Egress reporting = egress(kAllow);
  reporting.report_only = true;
  const auto rules = policy(reporting);
  rules->set_own_listeners({address("127.0.0.1:3128")});
  rules->set_forbidden({address("127.0.0.1:9901")});
  for (const char* at : {"127.0.0.1:3128", "127.0.0.1:9901", "169.254.169.254:80"}) {
    EXPECT_FALSE(may_dial(*rules, "name.test", at)) << at;
    EXPECT_FALSE(rules->reported(origin("name.test"), address(at))) << at;
  }
}

TEST(Policy, ReportsNothingWhileItDenies) {
  const auto rules = policy(egress(kDeny, {"good.test"}));
  EXPECT_FALSE(rules->reported(origin("other.test"), address("192.0.2.1:80")));
}

TEST(Policy, RefusesAPatternItDoesNotUnderstandByName) {
  const auto made = EgressPolicy::make(egress(kDeny, {"10.0.0.0/99"}));
  ASSERT_FALSE(made);
  EXPECT_NE(made.fault().detail.find("10.0.0.0/99"), std::string::npos);
}

}  // namespace
}  // namespace carpool::proxy::net
