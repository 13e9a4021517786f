// Unit tests of routing by the settings of the listener that accepted the request: a router alone, without a loop or a
// socket.
#include "proxy/exchange/router.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "exec/role.h"
#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/net/egress_policy.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "tests/sim/pool_world.h"
#include "tests/unit/heap_in_use.h"

namespace carpool::proxy {
namespace {

using http::Target;
using http::TargetForm;
using pool::Scheme;

Target host(std::string_view authority) {
  Target target;
  target.authority = authority;
  target.path = "/";
  return target;
}
Target absolute(Scheme scheme, std::string_view authority) {
  Target target = host(authority);
  target.form = TargetForm::absolute;
  target.scheme = scheme;
  target.named = true;
  return target;
}
// HTTP/2 with :scheme http and this :authority.
Target named(std::string_view authority) {
  Target target = host(authority);
  target.named = true;
  return target;
}
Target connect(std::string_view authority) {
  Target target = host(authority);
  target.form = TargetForm::authority;
  target.scheme = Scheme::tcp;
  target.named = true;
  return target;
}

class TheRouter : public ::testing::Test {
 protected:
  TheRouter() : environment(1), registry(1, 10) {
    exec::assume_on_loop();
    config::OriginSettings api;
    api.origin = *pool::parse_origin("https://api.test");
    api.alias = {"api"};
    config::OriginSettings other;
    other.origin = *pool::parse_origin("http://other.test");
    other.alias = {"other"};
    config.origins = {api, other};
    auto made = OriginRegistry::make(config, environment, registry);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    origins = std::move(*made);
    auto rules = net::EgressPolicy::make(config.egress);
    EXPECT_TRUE(rules);
    policy = std::move(*rules);
    router = std::make_unique<Router>(*origins, *policy);
  }
  ~TheRouter() override { origins->directory().stop(environment.now); }

  const ListenPoint& point_of(const config::Listen& listen, std::string_view bound) {
    point.set(listen);
    point.bind(*net::Address::parse(bound));
    return point;
  }
  // Returns the label of the origin, or the Fault's kind, for a request inside CONNECT to `origin`; `sni`: of its
  // client.
  std::string way_inside(const char* origin, const Target& target, const std::string& sni = {}) {
    exec::assume_on_loop();
    const config::Listen listen;
    ListenPoint outer;
    outer.set(listen);
    ListenPoint inside(outer, {*pool::parse_origin(origin)});
    if (!sni.empty()) inside.note_server_name(sni);
    const Result<const Route*> route = router->route(inside, true, target);
    return route ? (*route)->origin->destination->label() : std::string(fault_name(route.fault().kind));
  }
  // Returns the label of the origin, or the Fault's kind.
  std::string way(const config::Listen& listen, const Target& target, std::string_view bound = "127.0.0.1:3128") {
    exec::assume_on_loop();
    const Result<const Route*> route = router->route(point_of(listen, bound), !listen.cert_file.empty(), target);
    return route ? (*route)->origin->destination->label() : std::string(fault_name(route.fault().kind));
  }
  std::string host_for(const config::Listen& listen, const Target& target) {
    exec::assume_on_loop();
    const Result<const Route*> route =
        router->route(point_of(listen, "127.0.0.1:3128"), !listen.cert_file.empty(), target);
    return route ? (*route)->host : "none";
  }

  static std::string fault_name(FaultKind kind) {
    return kind == FaultKind::misdirected     ? "misdirected"
           : kind == FaultKind::egress_denied ? "denied"
                                              : "another fault";
  }

  test::FakeEnvironment environment;
  metrics::Registry registry;
  config::Config config;
  std::unique_ptr<OriginRegistry> origins;
  std::unique_ptr<net::EgressPolicy> policy;
  ListenPoint point;
  std::unique_ptr<Router> router;
};

config::Listen gateway_to(const std::string& origin) {
  config::Listen listen;
  listen.origin = origin;
  return listen;
}

config::Listen with_tls(config::Listen listen) {
  listen.cert_file = "cert.pem";
  listen.key_file = "key.pem";
  return listen;
}

TEST_F(TheRouter, TakesTheSchemeOfARequestInOriginFormFromTheConnection) {
  const config::Listen plain, secure = with_tls({});
  EXPECT_EQ(way(plain, host("else.test")), "http://else.test");
  EXPECT_EQ(way(secure, host("else.test")), "https://else.test");
  EXPECT_EQ(way(secure, host("else.test:8443")), "https://else.test:8443");
  EXPECT_EQ(way(secure, named("else.test")), "http://else.test") << ":scheme says it";
  EXPECT_EQ(way(secure, absolute(Scheme::http, "else.test")), "http://else.test");
  EXPECT_EQ(way(secure, absolute(Scheme::https, "else.test")), "https://else.test");
}

TEST_F(TheRouter, FindsAliasesInTheSchemeOfATlsListener) {
  const config::Listen plain, secure = with_tls({});
  EXPECT_EQ(way(secure, host("other")), "http://other.test");
  EXPECT_EQ(way(secure, absolute(Scheme::https, "api")), "https://api.test");
  EXPECT_EQ(way(secure, absolute(Scheme::https, "other")), "https://other") << "never without TLS";
  EXPECT_EQ(way(secure, absolute(Scheme::http, "api")), "https://api.test");
  EXPECT_EQ(way(plain, absolute(Scheme::https, "other")), "https://other");
}

TEST_F(TheRouter, LetsClientsOfATlsListenerWithAFixedOriginNameTheListener) {
  config::Listen listen = with_tls(gateway_to("http://other.test"));
  listen.preserve_host = true;
  for (const char* authority : {"localhost:3128", "127.0.0.1:3128", "other", "other:3128", "other.test"}) {
    EXPECT_EQ(way(listen, absolute(Scheme::https, authority)), "http://other.test") << authority;
    EXPECT_EQ(host_for(listen, absolute(Scheme::https, authority)), authority);
  }
  for (const char* authority : {"elsewhere.test", "api", "127.0.0.1:22"}) {
    EXPECT_EQ(way(listen, absolute(Scheme::https, authority)), "misdirected") << authority;
  }
  EXPECT_EQ(way(listen, absolute(Scheme::http, "localhost:3128")), "misdirected");
}

TEST_F(TheRouter, ReachesNothingButTheFixedOriginOfAListener) {
  config::Listen listen = gateway_to("https://api.test");
  for (const bool by_host : {true, false}) {
    for (const bool connects : {true, false}) {
      listen.route_by_host = by_host;
      listen.connect = connects;
      for (const char* authority : {"elsewhere.test", "other", "other.test", "127.0.0.1:22", "127.0.0.1:3128"}) {
        EXPECT_EQ(way(listen, host(authority)), "https://api.test") << authority;
        EXPECT_EQ(way(listen, absolute(Scheme::http, authority)), "misdirected") << authority;
        EXPECT_EQ(way(listen, absolute(Scheme::https, authority)), "misdirected") << authority;
        EXPECT_EQ(way(listen, connect("elsewhere.test:443")), "denied");
      }
      for (const char* authority : {"elsewhere.test", "other", "other.test", "127.0.0.1:22", "127.0.0.1:80"}) {
        EXPECT_EQ(way(listen, named(authority)), "misdirected") << authority;
      }
      EXPECT_EQ(way(listen, connect("api.test:443")), "denied");
    }
  }
  EXPECT_EQ(origins->directory().size(), 1U);
}

TEST_F(TheRouter, LetsTheFixedOriginBeNamedInEveryForm) {
  const config::Listen listen = gateway_to("https://api.test");
  for (const Target& target :
       {host("api.test"), host(""), absolute(Scheme::https, "API.test."), absolute(Scheme::https, "api.test:443"),
        absolute(Scheme::http, "api"), absolute(Scheme::http, "api:80"), named("api.test"), named("api.test:443"),
        named("api"), named("api:3128")}) {
    EXPECT_EQ(way(listen, target), "https://api.test") << target.authority;
    EXPECT_EQ(host_for(listen, target), "api.test") << target.authority;
  }
  EXPECT_EQ(way(listen, absolute(Scheme::http, "api.test")), "misdirected") << "plain text to it is another origin";
  EXPECT_EQ(way(listen, absolute(Scheme::https, "api")), "misdirected") << "an alias is http";
  EXPECT_EQ(way(listen, absolute(Scheme::http, "api:3128")), "misdirected");
}

TEST_F(TheRouter, TakesAnotherSchemeOrPortOfTheFixedOriginForAnotherOrigin) {
  const config::Listen listen = gateway_to("https://api.test");
  EXPECT_EQ(way(listen, absolute(Scheme::https, "api.test:444")), "misdirected");
  EXPECT_EQ(way(listen, absolute(Scheme::http, "api.test:443")), "misdirected");
}

TEST_F(TheRouter, AsksTheEgressPolicyForEveryOriginThatARequestNames) {
  config::Egress egress;
  egress.deny = {"denied.test"};
  auto rules = net::EgressPolicy::make(egress);
  ASSERT_TRUE(rules);
  policy = std::move(*rules);
  router = std::make_unique<Router>(*origins, *policy);
  const config::Listen proxy;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(way(proxy, absolute(Scheme::http, "denied.test")), "denied");
    EXPECT_EQ(way(proxy, connect("denied.test:443")), "denied");
    EXPECT_EQ(way(proxy, absolute(Scheme::http, "allowed.test")), "http://allowed.test");
  }
}

TEST_F(TheRouter, TakesTheListenersOwnAddressOverHttp2ForItsFixedOrigin) {
  const config::Listen listen = gateway_to("https://api.test");
  EXPECT_EQ(way(listen, named("127.0.0.1:3128")), "https://api.test");
  EXPECT_EQ(way(listen, named("localhost:3128")), "https://api.test");
  EXPECT_EQ(way(listen, named("127.0.0.1:3129")), "misdirected");
  EXPECT_EQ(way(listen, named("localhost:80")), "misdirected");
  EXPECT_EQ(way(listen, named("127.0.0.1:3130"), "0.0.0.0:3130"), "https://api.test");
  EXPECT_EQ(way(listen, named("203.0.113.7:3130"), "0.0.0.0:3130"), "misdirected");
  EXPECT_EQ(way(listen, named("localhost"), "unix:/run/carpool/proxy.sock"), "https://api.test");
}

TEST_F(TheRouter, KeepsHostOnlyWhereTheTargetIsAPath) {
  config::Listen listen = gateway_to("https://api.test");
  listen.preserve_host = true;
  EXPECT_EQ(host_for(listen, host("whatever.test")), "whatever.test");
  EXPECT_EQ(host_for(listen, host("api.test")), "api.test");
  EXPECT_EQ(host_for(listen, absolute(Scheme::http, "api")), "api.test");
  EXPECT_EQ(host_for(listen, host("")), "api.test") << "HTTP/1.0 may have none";
}

TEST_F(TheRouter, GoesWhereTheRequestSaysWithoutAFixedOrigin) {
  config::Listen listen;
  EXPECT_EQ(way(listen, host("api")), "https://api.test");
  EXPECT_EQ(way(listen, host("elsewhere.test")), "http://elsewhere.test");
  EXPECT_EQ(way(listen, absolute(Scheme::https, "elsewhere.test")), "https://elsewhere.test");
  EXPECT_EQ(way(listen, named("elsewhere.test:81")), "http://elsewhere.test:81");
  EXPECT_EQ(way(listen, connect("elsewhere.test:443")), "tcp://elsewhere.test:443");
  listen.route_by_host = false;
  EXPECT_EQ(way(listen, host("api")), "https://api.test");
  EXPECT_EQ(way(listen, host("elsewhere2.test")), "denied");
  EXPECT_EQ(way(listen, absolute(Scheme::http, "elsewhere2.test")), "http://elsewhere2.test");
}

TEST_F(TheRouter, ReachesInsideConnectTheOriginThatItNamedAndNoOther) {
  EXPECT_EQ(way_inside("https://api.test", host("api.test")), "https://api.test");
  EXPECT_EQ(way_inside("https://api.test", host("API.test:443")), "https://api.test");
  EXPECT_EQ(way_inside("https://api.test", host("")), "https://api.test") << "HTTP/1.0 may have none";
  EXPECT_EQ(way_inside("https://api.test", absolute(Scheme::https, "api.test")), "https://api.test");
  for (const Target& other : {host("other.test"), host("api"), host("api.test:8443"), named("api.test"),
                              absolute(Scheme::https, "other.test"), absolute(Scheme::http, "api.test"),
                              connect("api.test:443"), connect("other.test:443")}) {
    EXPECT_EQ(way_inside("https://api.test", other), "misdirected") << other.authority;
  }
  EXPECT_EQ(way_inside("https://other.test", host("other.test")), "https://other.test") << "each CONNECT apart";
  EXPECT_EQ(way_inside("https://api.test:8443", host("api.test:8443")), "https://api.test:8443");
  EXPECT_EQ(way_inside("https://api.test:8443", host("api.test")), "misdirected");
}

TEST_F(TheRouter, ReachesNothingInsideConnectForAnotherTlsServerName) {
  EXPECT_EQ(way_inside("https://api.test", host("api.test"), "api.test"), "https://api.test");
  EXPECT_EQ(way_inside("https://api.test", host("api.test"), "API.Test"), "https://api.test");
  EXPECT_EQ(way_inside("https://api.test", host("api.test"), "other.test"), "misdirected");
  EXPECT_EQ(way_inside("https://api.test", host("api.test"), "not a name"), "misdirected");
}

TEST_F(TheRouter, RemembersNoLongSpellingsOfAnAuthority) {
  config::Listen listen;
  listen.preserve_host = true;  // the route has the spelling too
  std::string spelling = "other.test:" + std::string(8000, '0') + "80";
  EXPECT_EQ(way(listen, host(spelling)), "http://other.test");
  const std::int64_t before = test::heap_in_use();
  for (int n = 0; n < 1000; ++n) {
    spelling.insert(spelling.size() - 2, 1, '0');
    ASSERT_EQ(way(listen, host(spelling)), "http://other.test");
    ASSERT_EQ(host_for(listen, host(spelling)), spelling);
  }
  EXPECT_LT(test::heap_in_use() - before, 256 * 1024);
}

TEST_F(TheRouter, RemembersRoutesOfEachListenerApart) {
  const config::Listen proxy, gateway = gateway_to("https://api.test");
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(way(proxy, absolute(Scheme::http, "other.test")), "http://other.test");
    EXPECT_EQ(way(gateway, absolute(Scheme::http, "other.test")), "misdirected");
    EXPECT_EQ(way(proxy, host("other.test")), "http://other.test");
    EXPECT_EQ(way(gateway, host("other.test")), "https://api.test");
    EXPECT_EQ(way(gateway, named("other.test")), "misdirected");
  }
}

}  // namespace
}  // namespace carpool::proxy
