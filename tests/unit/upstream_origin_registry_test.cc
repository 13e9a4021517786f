// Unit tests of the pools that a reload replaces: a registry alone, without a loop or a socket.
#include "proxy/upstream/origin/origin_registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/role.h"
#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/upstream/origin/credentials.h"
#include "tests/sim/pool_world.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy {
namespace {

constexpr std::uint32_t kKeptReady = 2;

config::Config kept_ready(std::vector<std::string> protocols) {
  config::Config settings;
  config::OriginSettings& origin = settings.origins.emplace_back();
  origin.origin = *pool::parse_origin("http://a.test");
  origin.upstream.protocols = std::move(protocols);
  origin.pool.min_idle = kKeptReady;
  return settings;
}

class TheOrigins : public ::testing::Test {
 protected:
  // `labels`: metrics.max_origins.
  TheOrigins(config::Config first, std::uint32_t labels) : environment(1), registry(1, labels) {
    exec::assume_on_loop();
    auto made = OriginRegistry::make(configs.emplace_back(std::move(first)), environment, registry);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    origins = std::move(*made);
  }
  ~TheOrigins() override {
    while (!environment.dials.empty()) environment.dial_failed();
    origins->directory().stop(environment.now);
  }
  void reload(config::Config wanted) {
    exec::assume_on_loop();
    config::Config& fresh = configs.emplace_back(std::move(wanted));
    auto prepared = origins->prepare(fresh);
    ASSERT_TRUE(prepared);
    EXPECT_TRUE(origins->apply(fresh, std::move(*prepared)).empty());
    origins->apply_limits(environment.now);
  }
  OriginRuntime& at(const char* uri) { return **origins->at(*pool::parse_origin(uri)); }
  void sweep() {
    origins->directory().sweep(environment.now);
    while (!environment.dials.empty()) environment.dialed();
  }

  test::FakeEnvironment environment;
  metrics::Registry registry;
  std::deque<config::Config> configs;  // the registry uses the last one
  std::unique_ptr<OriginRegistry> origins;
};

class AReplacedPool : public TheOrigins {
 protected:
  AReplacedPool() : TheOrigins(kept_ready({"h1"}), 10) {}
  pool::Destination& current() { return *at("http://a.test").destination; }
};

TEST_F(AReplacedPool, KeepsNoConnectionsReadyAndEnds) {
  pool::Destination& old = current();
  sweep();
  ASSERT_EQ(environment.live.size(), kKeptReady);
  reload(kept_ready({"h2"}));
  ASSERT_NE(&current(), &old);
  EXPECT_EQ(old.limits().min_idle, 0U);
  EXPECT_EQ(current().limits().min_idle, kKeptReady);
  const std::vector<pool::Destination*> retired =
      origins->retire_idle(Clock::now() + std::chrono::hours(1), std::chrono::minutes(1));
  ASSERT_EQ(retired, std::vector<pool::Destination*>{&old});
  EXPECT_TRUE(environment.live.empty());
  EXPECT_TRUE(origins->destroy(retired));
}

TEST_F(AReplacedPool, OfARemovedOriginKeepsNoConnectionsReady) {
  pool::Destination& old = current();
  reload({});
  ASSERT_NE(&current(), &old);
  EXPECT_EQ(old.limits().min_idle, 0U);
  sweep();
  EXPECT_TRUE(environment.live.empty());
}

TEST_F(AReplacedPool, LeavesItsPlaceToAnotherOrigin) {
  pool::Destination& old = current();
  reload(kept_ready({"h2"}));
  ASSERT_NE(&current(), &old);
  EXPECT_TRUE(origins->directory().make_room(Clock::now()));
  EXPECT_TRUE(old.reclaimed());
  EXPECT_FALSE(current().reclaimed());
}

TEST_F(AReplacedPool, IsUsedAgainWhenItsSettingsReturn) {
  pool::Destination& first = current();
  reload(kept_ready({"h2"}));
  pool::Destination& second = current();
  ASSERT_NE(&first, &second);
  reload(kept_ready({"h1"}));
  EXPECT_EQ(&current(), &first);
  EXPECT_EQ(first.limits().min_idle, kKeptReady);
  EXPECT_EQ(second.limits().min_idle, 0U);
  EXPECT_TRUE(origins->directory().make_room(Clock::now()));
  EXPECT_TRUE(second.reclaimed());
  EXPECT_FALSE(origins->directory().make_room(Clock::now())) << "the place of a configured origin is reserved";
}

// A request may ask for the pool before apply_limits(), on another loop.
TEST_F(AReplacedPool, LendsAgainAsSoonAsItsSettingsReturn) {
  pool::Destination& first = current();
  reload(kept_ready({"h2"}));
  ASSERT_TRUE(first.limits().replaced);
  config::Config& back = configs.emplace_back(kept_ready({"h1"}));
  auto prepared = origins->prepare(back);
  ASSERT_TRUE(prepared);
  exec::assume_on_loop();
  EXPECT_TRUE(origins->apply(back, std::move(*prepared)).empty());
  EXPECT_FALSE(first.limits().replaced);
}

TEST_F(AReplacedPool, PermitsNoOtherBurstNorDoesAnotherPoolOfItsOrigin) {
  const auto limited = [](std::vector<std::string> protocols, std::uint32_t rate, std::uint32_t retries) {
    config::Config settings = kept_ready(std::move(protocols));
    settings.origins.front().request.rate = rate;
    settings.origins.front().request.rate_burst = 1;
    settings.origins.front().request.max_retries = retries;
    return settings;
  };
  const auto admits = [this] {
    return (*origins->at(*pool::parse_origin("http://a.test")))->requests.admit(environment.now);
  };
  reload(limited({"h1"}, 1, 1));
  EXPECT_TRUE(admits());
  EXPECT_FALSE(admits());
  reload(limited({"h1"}, 1, 2));
  EXPECT_FALSE(admits());
  reload(limited({"h2"}, 1, 2));
  EXPECT_FALSE(admits());
  reload(limited({"h2"}, 2, 2));
  EXPECT_TRUE(admits()) << "the rate is another one";
}

TEST_F(AReplacedPool, PassesOnThePauseThatItsOriginAskedFor) {
  const auto cooling = [](std::vector<std::string> protocols) {
    config::Config settings = kept_ready(std::move(protocols));
    settings.origins.front().pool.cool_down = true;
    return settings;
  };
  reload(cooling({"h1"}));
  pool::Destination& first = current();
  first.cool_down(std::chrono::seconds(7), 503, environment.now);
  reload(cooling({"h2"}));
  ASSERT_NE(&current(), &first);
  EXPECT_EQ(current().cooling(environment.now), std::chrono::seconds(7));
  current().resume(environment.now);
  reload(cooling({"h1"}));
  ASSERT_EQ(&current(), &first);
  EXPECT_FALSE(first.cooling(environment.now)) << "an operator has ended it";
}

using AnAddedOrigin = AReplacedPool;

TEST_F(AnAddedOrigin, HasItsReadyConnectionsBeforeItsFirstRequest) {
  config::Config more = kept_ready({"h1"});
  more.origins.push_back(more.origins.front());
  more.origins.back().origin = *pool::parse_origin("http://b.test");
  reload(std::move(more));
  sweep();
  EXPECT_EQ(environment.live.size(), 2 * kKeptReady);
}

// An origin without a label of its own, because another one came first.
class AnOriginAmongOthers : public TheOrigins {
 protected:
  AnOriginAmongOthers() : TheOrigins({}, 1) {
    at("http://first.test");
    EXPECT_EQ(at("http://late.test").slot, metrics::kOtherOrigin);
  }
  static config::Config listing(const std::vector<std::string>& uris) {
    config::Config settings;
    for (const std::string& uri : uris) {
      settings.origins.emplace_back().origin = *pool::parse_origin(uri);
      settings.origins.back().pool.size = 7;
    }
    return settings;
  }
};

TEST_F(AnOriginAmongOthers, StaysThereWhenAReloadListsIt) {
  exec::assume_on_loop();
  reload(listing({"http://late.test"}));
  EXPECT_EQ(registry.slot_of("http://late.test"), metrics::kOtherOrigin) << "or the counters of the others would fall";
  EXPECT_EQ(at("http://late.test").slot, metrics::kOtherOrigin) << "as those of its requests";
}

TEST_F(AnOriginAmongOthers, LeavesALabelToOneThatNobodyHasUsed) {
  exec::assume_on_loop();
  reload(listing({"http://late.test", "http://new.test"}));
  EXPECT_NE(registry.slot_of("http://new.test"), metrics::kOtherOrigin);
  EXPECT_EQ(at("http://new.test").slot, registry.slot_of("http://new.test"));
}

class TheFilesOfAnOrigin : public ::testing::Test {
 protected:
  TheFilesOfAnOrigin() : environment(1), registry(1, 10), authority(std::in_place, tls::serve()->certificate_pem()) {
    exec::assume_on_loop();
    auto made = OriginRegistry::make(named(), environment, registry);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    origins = std::move(*made);
  }
  ~TheFilesOfAnOrigin() override { origins->directory().stop(environment.now); }
  config::Config& named() {
    config::Config& settings = configs.emplace_back();
    config::OriginSettings& origin = settings.origins.emplace_back();
    origin.origin = *pool::parse_origin("https://a.test");
    origin.upstream.tls.ca_file = path;
    return settings;
  }
  config::Config& unnamed() { return configs.emplace_back(); }

  test::FakeEnvironment environment;
  metrics::Registry registry;
  std::deque<config::Config> configs;
  std::optional<net::TemporaryFile> authority;
  const std::string path = authority->path();
  std::unique_ptr<OriginRegistry> origins;
};

TEST_F(TheFilesOfAnOrigin, AreNotNeededOnceItIsRemoved) {
  authority.reset();
  config::Config& fresh = unnamed();
  auto prepared = origins->prepare(fresh);
  ASSERT_TRUE(prepared) << prepared.fault().detail;
  EXPECT_TRUE(origins->apply(fresh, std::move(*prepared)).empty());
  EXPECT_FALSE(origins->prepare(named())) << "they are needed again";
}

TEST_F(TheFilesOfAnOrigin, AreNoChangeOnceItIsRemoved) {
  std::ofstream(path) << tls::serve()->certificate_pem();
  const auto used = origins->prepare(named());
  ASSERT_TRUE(used);
  EXPECT_EQ(used->files, std::vector<std::string>{path});
  const auto unused = origins->prepare(unnamed());
  ASSERT_TRUE(unused);
  EXPECT_TRUE(unused->files.empty());
  EXPECT_EQ(unused->renewed.size(), 1U) << "a request of its pool may still run";
}

TEST_F(TheFilesOfAnOrigin, OfCredentialsAreReadByAReloadOnlyIfNobodyElseReadsThem) {
  const net::TemporaryFile secret("one");
  const auto with_secret = [&]() -> config::Config& {
    config::Config& settings = unnamed();
    config::OriginSettings& origin = settings.origins.emplace_back();
    origin.origin = *pool::parse_origin("https://a.test");
    origin.headers = {{"X-Api-Key", {{}, secret.path(), {}}}};
    return settings;
  };
  const auto reload = [&](config::Config& fresh) {
    auto prepared = origins->prepare(fresh);
    ASSERT_TRUE(prepared);
    EXPECT_TRUE(origins->apply(fresh, std::move(*prepared)).empty());
  };
  reload(with_secret());
  Credentials* const credentials = origins->all_credentials().at(0);
  std::ofstream(secret.path()) << "two";
  reload(with_secret());
  EXPECT_EQ(credentials->check_files().size(), 1U) << "who follows the file reports the new value";
  reload(unnamed());
  std::ofstream(secret.path()) << "three";
  reload(with_secret());
  EXPECT_TRUE(credentials->check_files().empty());
}

TEST(AnOriginWithRules, IsReachedByNoOtherSpellingSchemeOrTunnel) {
  exec::assume_on_loop();
  config::Config settings;
  config::OriginSettings& ruled = settings.origins.emplace_back();
  ruled.origin = *pool::parse_origin("http://192.0.2.1:8080");
  ruled.allow = {"GET /v1/*"};
  settings.origins.emplace_back().origin = *pool::parse_origin("tcp://192.0.2.1:8443");
  test::FakeEnvironment environment(1);
  metrics::Registry registry(1, 10);
  auto made = OriginRegistry::make(settings, environment, registry);
  ASSERT_TRUE(made);
  const auto allows = [&](std::string_view uri, std::string_view path) {
    exec::assume_on_loop();
    return (*(*made)->at(*pool::parse_origin(uri)))->allows("GET", path);
  };
  EXPECT_TRUE(allows("http://192.0.2.1:8080", "/v1/a"));
  EXPECT_FALSE(allows("http://192.0.2.1:8080", "/v2"));
  for (const char* around : {"tcp://192.0.2.1:8080", "https://192.0.2.1:8080", "http://[::ffff:192.0.2.1]:8080",
                             "http://[::ffff:c000:201]:8080", "tcp://[::ffff:192.0.2.1]:8080"}) {
    EXPECT_FALSE(allows(around, "/v2")) << around;
    EXPECT_FALSE(allows(around, "/v1/a")) << around;
  }
  for (const char* other : {"http://192.0.2.1:8081", "http://192.0.2.2:8080", "http://[2001:db8::1]:8080",
                            "tcp://192.0.2.1:8443", "http://api.example.com:8080"}) {
    EXPECT_TRUE(allows(other, "/v2")) << other;
  }
  (*made)->directory().stop(environment.now);
}

// Each origin has a TLS identity, a parent proxy and credentials of its own.
config::Config all_different(std::size_t origins, const std::string& version) {
  config::Config settings;
  settings.pool_total.max_origins = static_cast<std::uint32_t>(origins);
  for (std::size_t i = 0; i < origins; ++i) {
    const std::string name = version + std::to_string(i) + ".test";
    config::OriginSettings& origin = settings.origins.emplace_back();
    origin.origin = *pool::parse_origin("https://o" + std::to_string(i) + ".test");
    origin.upstream.tls.server_name = name;
    origin.upstream.proxy = "http://" + name;
    origin.headers = {{"X-Api-Key", {name, {}, {}}}};
  }
  return settings;
}

TEST(Origins, MayAllHaveDifferentSettingsHoweverManyTheConfigurationNames) {
  exec::assume_on_loop();
  test::FakeEnvironment environment(1);
  metrics::Registry registry(1, 10);
  config::Config first = all_different(OriginRegistry::kMaxLeft + 1, "a");
  auto made = OriginRegistry::make(first, environment, registry);
  ASSERT_TRUE(made) << made.fault().detail;
  config::Config second = all_different(OriginRegistry::kMaxLeft / 2, "b");
  const auto kept = (*made)->prepare(second);
  EXPECT_FALSE(kept) << "what earlier configurations have left is limited";
  (*made)->directory().stop(environment.now);
}

}  // namespace
}  // namespace carpool::proxy
