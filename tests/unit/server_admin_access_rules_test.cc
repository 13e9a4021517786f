// Unit tests of the access rules of the admin endpoint.
#include "proxy/server/admin/access_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "proxy/net/tls/server_context.h"

namespace carpool::proxy::admin {
namespace {

AdminRequest local(std::string_view method, std::string_view target) {
  AdminRequest request;
  request.method = method;
  request.target = target;
  request.host = "127.0.0.1:9901";
  return request;
}

int status_of(const AdminRequest& request, const Rules& rules) {
  const auto refused = refusal(request, rules, request.target);
  return refused ? refused->status : 0;
}

ListenerIdentity certified(std::vector<std::string> names) {
  tls::ServerSettings settings;
  settings.names = std::move(names);
  return std::move(*tls::ServerContext::make(settings));
}

TEST(HostGuard, LetsInIpLiteralsLocalhostAndTheNamesOfTheCertificate) {
  const ListenerIdentity own = certified({"other.example", "pod-1.example"});
  for (const char* host : {"127.0.0.1", "127.0.0.1:9901", "10.0.0.7:9901", "[::1]", "[::1]:9901", "[fe80::1]:1",
                           "localhost", "LocalHost:9901", "Pod-1.example:9901"}) {
    EXPECT_TRUE(host_allowed(host, own)) << host;
  }
}

TEST(HostGuard, KeepsOutEveryOtherName) {
  const ListenerIdentity own = certified({"other.example"});
  for (const char* host :
       {"", ":9901", "evil.example", "evil.example:9901", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.0.0.1:9901@evil.example", "localhost:x", "[::1", "[::1]evil", "[localhost]", "127.1", "0x7f.1",
        "2130706433", "::1", "localhost.", "127.0.0.1 ", "127.0.0.1,evil.example", "pod-1.example"}) {
    EXPECT_FALSE(host_allowed(host, nullptr)) << host;
    EXPECT_FALSE(host_allowed(host, own)) << host;
  }
}

TEST(HostGuard, RefusesAReboundNameBeforeAnythingElse) {
  AdminRequest request = local("GET", "/livez");
  request.host = "evil.example:9901";
  EXPECT_EQ(status_of(request, {}), 403);
  Rules unix_socket;
  unix_socket.unix_socket = true;
  EXPECT_EQ(status_of(request, unix_socket), 0) << "no browser reaches a Unix socket";
}

TEST(ForgeryGuard, RefusesChangesThatAnotherSitesPageAsksFor) {
  AdminRequest request = local("POST", "/quit");
  EXPECT_EQ(status_of(request, {}), 0) << "curl sends no Origin";
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:8080", "http://localhost:9901",
                             "127.0.0.1:9901", "https://127.0.0.1:9901"}) {
    request.origin = origin;
    EXPECT_EQ(status_of(request, {}), 403) << origin;
  }
  request.origin = "http://127.0.0.1:9901";
  EXPECT_EQ(status_of(request, {}), 0);
  for (const char* site : {"cross-site", "same-site", "nonsense"}) {
    request.fetch_site = site;
    EXPECT_EQ(status_of(request, {}), 403) << site;
  }
  for (const char* site : {"same-origin", "none"}) {
    request.fetch_site = site;
    EXPECT_EQ(status_of(request, {}), 0) << site;
  }
}

TEST(ForgeryGuard, KnowsThePagesOfAnEndpointWithTlsByTheirScheme) {
  Rules rules;
  rules.identity = certified({"localhost"});
  AdminRequest request = local("POST", "/quit");
  request.origin = "https://127.0.0.1:9901";
  EXPECT_EQ(status_of(request, rules), 0);
  request.origin = "http://127.0.0.1:9901";
  EXPECT_EQ(status_of(request, rules), 403);
}

TEST(ForgeryGuard, LetsReadersBe) {
  AdminRequest request = local("GET", "/pools");
  request.origin = "http://evil.example";
  request.fetch_site = "cross-site";
  EXPECT_EQ(status_of(request, {}), 0) << "without CORS fields the page cannot read the answer";
}

TEST(TokenGuard, AsksForTheTokenButNotOfProbesAndScrapers) {
  Rules rules;
  rules.token = "s3cret";
  EXPECT_EQ(status_of(local("GET", "/pools"), rules), 401);
  for (const char* path : {"/livez", "/readyz", "/metrics"}) EXPECT_EQ(status_of(local("GET", path), rules), 0) << path;
  AdminRequest request = local("POST", "/quit");
  request.authorization = "bearer  s3cret";
  EXPECT_EQ(status_of(request, rules), 0);
}

TEST(TokenGuard, TakesTheWholeTokenAndNothingElse) {
  EXPECT_TRUE(token_matches("Bearer abc", "abc"));
  for (const char* given : {"", "abc", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd", "Bearer abcabc", "Bearer ABC",
                            "Basic abc", "Bearerabc", "Bearer abc "}) {
    EXPECT_FALSE(token_matches(given, "abc")) << given;
  }
  EXPECT_FALSE(token_matches("Bearer ", "")) << "an empty token lets nobody in";
}

TEST(MetricsListener, HasMetricsAndProbesAndNothingElse) {
  Rules rules;
  rules.metrics_only = true;
  for (const char* path : {"/livez", "/readyz", "/metrics"}) EXPECT_EQ(status_of(local("GET", path), rules), 0) << path;
  for (const char* path : {"/", "/pools", "/config", "/pool/metrics", "/metrics/x"}) {
    EXPECT_EQ(status_of(local("GET", path), rules), 404) << path;
  }
}

}  // namespace
}  // namespace carpool::proxy::admin
