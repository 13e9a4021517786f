// Unit tests of name constraints: they bound both kinds of host, or the authority is rejected.
#include "proxy/net/tls/name_constraints.h"

#include <gtest/gtest.h>

#include <string>

#include "proxy/net/tls/certificate_draft.h"

namespace carpool::proxy::tls {
namespace {

// Returns what these constraints leave open, in OpenSSL's notation; "": nothing.
std::string left_open(const std::string& constraints) {
  const Certified made = CertificateDraft()
                             .valid(std::chrono::seconds(0), std::chrono::hours(1))
                             .subject("authority")
                             .issued_by(nullptr)
                             .extend(NID_basic_constraints, "critical,CA:TRUE")
                             .extend(NID_name_constraints, constraints)
                             .sign(nullptr);
  EXPECT_TRUE(made.certificate) << constraints;
  const char* why = unconstrained(made.certificate.get());
  if (why == nullptr) return "";
  const std::string text = why;
  for (const char* kind : {"DNS names", "IPv4 addresses", "IPv6 addresses"}) {
    if (text.find(kind) != std::string::npos) return kind;
  }
  return text;
}

const std::string kNoAddress = ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::";

TEST(NameConstraints, Bound_names_by_what_is_permitted_and_addresses_by_what_is_excluded) {
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test" + kNoAddress), "");
}

TEST(NameConstraints, Of_addresses_alone_leave_every_name_open) {
  EXPECT_EQ(left_open("critical,permitted;IP:10.0.0.0/255.0.0.0"), "DNS names");
  EXPECT_EQ(left_open("critical,excluded;DNS:a.test" + kNoAddress), "DNS names");
}

TEST(NameConstraints, Of_names_alone_leave_every_address_open) {
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test"), "IPv4 addresses");
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,excluded;IP:0.0.0.0/0.0.0.0"), "IPv6 addresses");
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,excluded;IP:::/::"), "IPv4 addresses");
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,excluded;IP:10.0.0.0/255.0.0.0"), "IPv4 addresses");
}

TEST(NameConstraints, That_permit_everything_bound_nothing) {
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,permitted;IP:0.0.0.0/0.0.0.0"), "IPv4 addresses");
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,permitted;IP:::/::"), "IPv6 addresses");
}

TEST(NameConstraints, Whose_networks_together_permit_every_address_bound_nothing) {
  const std::string names = "critical,permitted;DNS:a.test";
  EXPECT_EQ(left_open(names + ",permitted;IP:128.0.0.0/128.0.0.0,permitted;IP:0.0.0.0/128.0.0.0"), "IPv4 addresses");
  EXPECT_EQ(left_open(names + ",permitted;IP:8000::/8000::,permitted;IP:::/8000::"), "IPv6 addresses");
  EXPECT_EQ(left_open(names + ",permitted;IP:0.0.0.0/128.0.0.0,permitted;IP:64.0.0.0/192.0.0.0"
                              ",permitted;IP:128.0.0.0/192.0.0.0,permitted;IP:192.0.0.0/192.0.0.0"),
            "IPv4 addresses");
  EXPECT_EQ(left_open(names + ",permitted;IP:0.0.0.0/128.0.0.0,permitted;IP:128.0.0.0/192.0.0.0"), "");
}

TEST(NameConstraints, Whose_networks_together_exclude_every_address_bound_addresses) {
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,excluded;IP:0.0.0.0/128.0.0.0,excluded;IP:128.0.0.0/128.0.0.0"
                      ",excluded;IP:::/::"),
            "");
}

TEST(NameConstraints, With_a_mask_that_is_no_prefix_are_not_understood) {
  EXPECT_NE(left_open("critical,permitted;DNS:a.test,permitted;IP:10.0.0.0/255.0.255.0"), "");
  EXPECT_NE(left_open("critical,permitted;DNS:a.test,permitted;IP:10.0.0.0/253.0.0.0"), "");
}

TEST(NameConstraints, Of_one_address_bound_addresses_of_both_versions) {
  EXPECT_EQ(left_open("critical,permitted;DNS:a.test,permitted;IP:10.0.0.7/255.255.255.255"), "");
}

TEST(NameConstraints, Of_another_kind_of_name_alone_leave_hosts_open) {
  EXPECT_EQ(left_open("critical,permitted;email:a.test"), "DNS names");
}

}  // namespace
}  // namespace carpool::proxy::tls
