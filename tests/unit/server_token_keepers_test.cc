// Unit tests of the keepers of tokens: how many there are after reloads, and what becomes of their tokens.
#include "proxy/server/oauth2/token_keepers.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "proxy/server/worker.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/oauth_token.h"
#include "tests/unit/data_plane.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEndpoint = "http://127.0.0.1:1";

config::Config with_token(const std::string& secret) {
  config::Config config;
  config::OriginSettings& origin = config.origins.emplace_back();
  origin.origin = *pool::parse_origin("https://api.test");
  origin.oauth2.token_url = std::string(kEndpoint) + "/token";
  origin.oauth2.client_id = "client";
  origin.oauth2.client_secret.text = secret;
  return config;
}

class TheKeepers : public testing::Test {
 protected:
  TheKeepers() : plane_(with_token("first")) { exec::assume_on_loop(); }
  ~TheKeepers() override {
    exec::assume_on_loop();
    keepers_.stop();
    plane_.turn();
  }
  void reload(const config::Config& wanted) {
    config::Config& fresh = configs_.emplace_back(wanted);
    auto prepared = plane_.origins->prepare(fresh);
    ASSERT_TRUE(prepared) << prepared.fault().detail;
    EXPECT_TRUE(plane_.origins->apply(fresh, std::move(*prepared)).empty());
  }
  void sweep() {
    exec::assume_on_loop();
    keepers_.sweep();
  }
  // Two sweeps, with what happens between them.
  void settle() {
    sweep();
    plane_.turn();
    sweep();
  }
  OAuthToken& token() { return *plane_.origins->all_credentials().at(0)->token(); }
  bool fetching() {
    return (*plane_.origins->at(*pool::parse_origin(kEndpoint)))->destination->snapshot(plane_.now).waiting != 0;
  }

  std::deque<config::Config> configs_;
  test::DataPlane plane_;
  const Workers none_;
  TokenKeepers keepers_{plane_.context, none_};
};

TEST_F(TheKeepers, AreAsManyAsTheTokensInForceWhateverWasReloaded) {
  settle();
  EXPECT_EQ(keepers_.size(), 1U);
  EXPECT_TRUE(fetching());
  for (int i = 0; i < 50; ++i) {
    reload(with_token("another " + std::to_string(i)));
    settle();
    EXPECT_EQ(keepers_.size(), 1U);
  }
  reload({});
  settle();
  EXPECT_EQ(keepers_.size(), 0U);
  EXPECT_FALSE(fetching());
}

TEST_F(TheKeepers, LastUntilNoMailToThemIsInFlight) {
  settle();
  token().grant("t", plane_.now + 1h);
  ASSERT_TRUE(token().refuse(token().serial(), plane_.now));
  reload({});
  sweep();
  sweep();
  EXPECT_EQ(keepers_.size(), 1U);
  plane_.turn();
  sweep();
  EXPECT_EQ(keepers_.size(), 0U);
}

TEST_F(TheKeepers, GoOnWithTheTokenOfSettingsThatReturn) {
  settle();
  token().grant("t", plane_.now + 1h);
  const std::uint64_t serial = token().serial();
  reload({});
  settle();
  reload(with_token("first"));
  settle();
  EXPECT_EQ(token().serial(), serial);
  EXPECT_FALSE(fetching()) << "it lasts for an hour";
  plane_.pass(49min);
  EXPECT_TRUE(fetching()) << "it is renewed";
}

TEST_F(TheKeepers, ReplaceATokenThatEndedWhileItsSettingsWereAway) {
  settle();
  token().grant("t", plane_.now + 1min);
  reload({});
  settle();
  plane_.pass(2min);
  reload(with_token("first"));
  settle();
  EXPECT_EQ(token().serial(), 0U);
  EXPECT_TRUE(fetching());
}

}  // namespace
}  // namespace carpool::proxy
