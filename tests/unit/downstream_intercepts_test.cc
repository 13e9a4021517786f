// Unit tests of the intercepted origins of a process, and of the list of clients that refused one.
#include "proxy/downstream/intercepts.h"

#include <gtest/gtest.h>

#include <string>

#include "proxy/exchange/listen_point.h"

namespace carpool::proxy {
namespace {

using metrics::CertificateAlert;
using metrics::TlsOffer;
using std::chrono::minutes;
using Noted = Intercepts::Noted;

const Instant kStart = Instant{} + std::chrono::hours(1);
const std::string kA = "https://a.test", kB = "https://b.test";

Interception at(const std::string& origin, const std::string& client, std::uint64_t authority = 1) {
  return {*pool::parse_origin(origin), authority, {client, TlsOffer::tls13_h2, 7}};
}

class TheIntercepts : public testing::Test {
 protected:
  TheIntercepts() { intercepts_.replace({{kA, nullptr}, {kB, nullptr}}, 1, true); }
  Noted refuses(const Interception& one, Instant now = kStart, CertificateAlert alert = CertificateAlert::unknown_ca) {
    return intercepts_.note_refusal(one, alert, now);
  }
  bool refused(const Interception& one, Instant now = kStart) const { return intercepts_.refused_before(one, now); }
  Intercepts intercepts_;
};

TEST_F(TheIntercepts, AreTheListedOrigins) {
  ASSERT_TRUE(intercepts_.leaf(kA));
  EXPECT_EQ(intercepts_.leaf(kA)->authority, 1U);
  EXPECT_FALSE(intercepts_.leaf("https://c.test"));
  intercepts_.replace({{"https://c.test", nullptr}}, 1, true);
  EXPECT_FALSE(intercepts_.leaf(kA));
  EXPECT_TRUE(intercepts_.leaf("https://c.test"));
}

TEST_F(TheIntercepts, AreInForceWithTheirAuthority) {
  EXPECT_TRUE(intercepts_.in_force(at(kA, "curl")));
  intercepts_.replace({{kA, nullptr}}, 2, true);
  EXPECT_FALSE(intercepts_.in_force(at(kA, "curl"))) << "its certificate is of an authority that was replaced";
  EXPECT_TRUE(intercepts_.in_force(at(kA, "curl", 2)));
  EXPECT_FALSE(intercepts_.in_force(at(kB, "curl", 2))) << "the origin is intercepted no more";
}

TEST_F(TheIntercepts, KnowForTenMinutesWhoRefused) {
  const Interception one = at(kA, "10.0.0.1 curl");
  refuses(one);
  EXPECT_TRUE(refused(one, kStart + minutes(10) - Duration(1)));
  EXPECT_FALSE(refused(one, kStart + minutes(10)));
  refuses(one, kStart + minutes(10));
  EXPECT_TRUE(refused(one, kStart + minutes(19)));
}

TEST_F(TheIntercepts, TakeARefusalForThatOfOneClientAtOneOrigin) {
  refuses(at(kA, "10.0.0.1 curl"));
  EXPECT_FALSE(refused(at(kA, "10.0.0.1 java")));
  EXPECT_FALSE(refused(at(kB, "10.0.0.1 curl")));
  Interception other = at(kA, "10.0.0.1 curl");
  other.client.suites = 8;
  EXPECT_FALSE(refused(other)) << "another TLS library";
  other = at(kA, "10.0.0.1 curl");
  other.client.offer = TlsOffer::tls12;
  EXPECT_FALSE(refused(other));
}

TEST_F(TheIntercepts, TakeTheSecondEndWithoutAWordForARefusal) {
  const Interception one = at(kA, "curl");
  EXPECT_EQ(refuses(one, kStart, CertificateAlert::none), Noted::suspicion);
  EXPECT_FALSE(refused(one));
  EXPECT_EQ(refuses(one, kStart + minutes(1), CertificateAlert::none), Noted::first_refusal);
  EXPECT_TRUE(refused(one, kStart + minutes(1)));
}

TEST_F(TheIntercepts, ForgetASuspicionOfWhoTrustsThem) {
  const Interception one = at(kA, "curl");
  refuses(one, kStart, CertificateAlert::none);
  intercepts_.note_trust(one);
  EXPECT_EQ(refuses(one, kStart, CertificateAlert::none), Noted::suspicion);
  refuses(one, kStart, CertificateAlert::none);
  intercepts_.note_trust(one);
  EXPECT_TRUE(refused(one)) << "a refusal stays";
}

TEST_F(TheIntercepts, ForgetASuspicionAfterTenMinutes) {
  const Interception one = at(kA, "curl");
  refuses(one, kStart, CertificateAlert::none);
  EXPECT_EQ(refuses(one, kStart + minutes(10), CertificateAlert::none), Noted::suspicion);
}

TEST_F(TheIntercepts, GiveNoTunnelsWhereNoneAreWanted) {
  intercepts_.replace({{kA, nullptr}}, 1, false);
  refuses(at(kA, "curl"));
  EXPECT_FALSE(refused(at(kA, "curl")));
  EXPECT_FALSE(intercepts_.tunnels_after_refusal());
}

TEST_F(TheIntercepts, TellTheFirstRefusalOfAnyoneFromLaterOnes) {
  EXPECT_EQ(refuses(at(kA, "1")), Noted::first_refusal);
  EXPECT_EQ(refuses(at(kA, "1")), Noted::refusal);
  EXPECT_EQ(refuses(at(kA, "2")), Noted::refusal);
  EXPECT_EQ(refuses(at(kB, "1")), Noted::first_refusal);
  intercepts_.replace({{kA, nullptr}}, 1, true);
  EXPECT_EQ(refuses(at(kA, "3")), Noted::refusal) << "it stayed intercepted";
  EXPECT_EQ(refuses(at(kB, "3")), Noted::refusal) << "it is not intercepted now";
  intercepts_.replace({{kA, nullptr}, {kB, nullptr}}, 1, true);
  EXPECT_EQ(refuses(at(kB, "1")), Noted::first_refusal) << "it is intercepted anew";
}

TEST_F(TheIntercepts, CountRefusalsByTheirOfferAndAlert) {
  refuses(at(kA, "1"));
  refuses(at(kA, "2"));
  refuses(at(kA, "2"), kStart, CertificateAlert::other);
  const auto counts = intercepts_.refusals();
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts[0].refusals + counts[1].refusals, 3U);
  for (const metrics::RefusalSample& one : counts) EXPECT_EQ(one.refusals, one.alert == "unknown_ca" ? 2U : 1U);
}

TEST_F(TheIntercepts, KeepTheCountOfAnOriginWhoseInterceptionEnds) {
  const auto sum = [this] {
    std::uint64_t all = 0;
    for (const metrics::RefusalSample& one : intercepts_.refusals()) all += one.refusals;
    return all;
  };
  refuses(at(kA, "1"));
  refuses(at(kB, "1"));
  intercepts_.replace({{kA, nullptr}}, 1, true);
  EXPECT_EQ(sum(), 2U) << "a counter never falls";
  refuses(at(kB, "2"));
  EXPECT_EQ(sum(), 2U) << "it is not intercepted now";
  intercepts_.replace({{kA, nullptr}, {kB, nullptr}}, 1, true);
  refuses(at(kB, "3"));
  EXPECT_EQ(sum(), 3U);
}

TEST_F(TheIntercepts, ForgetTheOldestOfTooManyRefusals) {
  refuses(at(kA, "first"));
  refuses(at(kA, "second"));
  refuses(at(kA, "first"));  // it is the newer one now
  for (int n = 0; n < 4095; ++n) refuses(at(kA, "client " + std::to_string(n)));
  EXPECT_FALSE(refused(at(kA, "second")));
  EXPECT_TRUE(refused(at(kA, "first")));
  EXPECT_TRUE(refused(at(kA, "client 4094")));
}

}  // namespace
}  // namespace carpool::proxy
