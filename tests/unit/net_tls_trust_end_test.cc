// A session ends with the first of the certificates and revocation lists that its verification relied on.
#include "tests/unit/net_tls_chain_support.h"

namespace carpool::proxy::tls {
namespace {

constexpr auto kBrief = 3s;
constexpr const char* kVersions[] = {"1.2", "1.3"};

// A pair whose root, intermediate authority or list of either ends after kBrief.
struct Ending {
  Ending(std::string what, const Lives& lives, std::chrono::seconds list_of_root, std::chrono::seconds list_of_middle,
         bool of_the_client, const std::string& version)
      : name(std::move(what) + ", TLS " + version), chain(lives) {
    const std::string lists = revocation_list(chain.root, list_of_root) + revocation_list(chain.middle, list_of_middle);
    pair = std::make_unique<ChainPair>(chain, lists, of_the_client, version);
  }
  std::string name;
  Chain chain;
  std::unique_ptr<ChainPair> pair;
};

std::vector<Ending> all_that_may_end(bool of_the_client) {
  std::vector<Ending> all;
  for (const char* version : kVersions) {
    all.emplace_back("the root", Lives{kBrief, 1h, 1h}, 1h, 1h, of_the_client, version);
    all.emplace_back("the intermediate authority", Lives{1h, kBrief, 1h}, 1h, 1h, of_the_client, version);
    all.emplace_back("the root's list", Lives{}, kBrief, 1h, of_the_client, version);
    all.emplace_back("the intermediate authority's list", Lives{}, 1h, kBrief, of_the_client, version);
  }
  return all;
}

// The second connection resumes the session of the first.
void expect_resumption(Ending& one) {
  ASSERT_NE(one.pair->connect(), nullptr) << one.name << one.pair->refusal;
  const auto again = one.pair->connect();
  ASSERT_NE(again, nullptr) << one.name << one.pair->refusal;
  EXPECT_TRUE(again->server->security().resumed) << one.name;
}

// Connects again and again, so that each ticket comes from a resumption, until the verification fails.
void expect_end(Ending& one, Instant limit) {
  bool refused = false;
  while (!refused && Clock::now() < limit) refused = one.pair->connect() == nullptr;
  EXPECT_TRUE(refused) << one.name;
  const bool says = one.pair->refusal.find("expired") != std::string::npos;
  EXPECT_TRUE(says) << one.name << ": " << one.pair->refusal;
}

class TlsTrust : public testing::TestWithParam<bool> {};

TEST_P(TlsTrust, EndsASessionWithTheFirstThatEndsInItsChain) {
  std::vector<Ending> all = all_that_may_end(GetParam());
  for (Ending& one : all) expect_resumption(one);
  const Instant limit = Clock::now() + 20s;
  for (Ending& one : all) expect_end(one, limit);
}

INSTANTIATE_TEST_SUITE_P(OfEitherSide, TlsTrust, testing::Values(true, false),
                         [](const auto& side) { return side.param ? "InAClient" : "InAnOrigin"; });

TEST(TlsTrustOfAnOrigin, EndsASessionAlsoInTheProcessThatTookItOver) {
  std::vector<Ending> all = all_that_may_end(false);
  for (Ending& one : all) {
    ASSERT_NE(one.pair->connect(), nullptr) << one.name;
    one.pair->hand_over();
    const auto again = one.pair->connect();
    ASSERT_NE(again, nullptr) << one.name;
    EXPECT_TRUE(again->client->security().resumed) << one.name << ": the session was taken over";
  }
  const Instant limit = Clock::now() + 20s;
  for (Ending& one : all) expect_end(one, limit);
}

TEST(TlsTrustOfAnOrigin, IsOfNoConcernWithoutVerification) {
  const Chain chain(Lives{-1min, 1h, 1h});
  ChainPair pair(chain, "", false);
  EXPECT_EQ(pair.connect(), nullptr);
  ClientSettings blind;
  blind.verify = false;
  auto made = ClientContext::make(blind);
  ASSERT_TRUE(made);
  pair.client = std::move(*made);
  ASSERT_NE(pair.connect(), nullptr);
  const auto again = pair.connect();
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(again->client->security().resumed);
}

}  // namespace
}  // namespace carpool::proxy::tls
