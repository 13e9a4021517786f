// Unit tests of rules about requests: what they match, and which paths match nothing.
#include "proxy/http/request_rule.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

bool matches(std::string_view rule, std::string_view method, std::string_view path) {
  const Result<RequestRule> parsed = RequestRule::parse(rule);
  EXPECT_TRUE(parsed) << rule;
  return parsed && parsed->matches(method, path);
}

TEST(RequestRule, MatchesItsMethodAndItsPathAlone) {
  EXPECT_TRUE(matches("GET /v1/users", "GET", "/v1/users"));
  EXPECT_TRUE(matches("GET /v1/users", "GET", "/v1/users?q=/../x"));
  for (const char* path : {"/v1/users/", "/v1/user", "/v1/Users", "/v1/users/1", "//v1/users", "/v1/%75sers", "*"}) {
    EXPECT_FALSE(matches("GET /v1/users", "GET", path)) << path;
  }
  for (const char* method : {"POST", "get", "GETS", "HEAD", "*"}) {
    EXPECT_FALSE(matches("GET /v1/users", method, "/v1/users")) << method;
  }
}

TEST(RequestRule, MatchesEveryPathThatBeginsLikeIts) {
  for (const char* path :
       {"/v1/", "/v1/a", "/v1/a/b?c", "/v1/a%20b", "/v1/.well-known", "/v1/a..b;c", "/v1//a", "/v1/%20",
        "/v1/a%3Fb%23c", "/v1/%3F..", "/v1/main...next", "/v1/caf%C3%A9.", "/v1/\xE6\x97\xA5/%F0%9F%98%80"}) {
    EXPECT_TRUE(matches("GET /v1/*", "GET", path)) << path;
  }
  for (const char* path : {"/v1", "/v2/", "/", "", "?/v1/", "/v1%2Fa"}) {
    EXPECT_FALSE(matches("GET /v1/*", "GET", path)) << path;
  }
}

TEST(RequestRule, MatchesEveryMethodIfItNamesNone) {
  for (const char* method : {"GET", "DELETE", "x"}) EXPECT_TRUE(matches("* /*", method, "/a")) << method;
}

TEST(RequestRule, TakesAQueryWithoutAPathForTheRoot) {
  EXPECT_TRUE(matches("GET /", "GET", "?q"));
  EXPECT_TRUE(matches("GET /", "GET", "/"));
}

TEST(RequestRule, MatchesNoPathThatAnOriginMayTakeForAnotherOne) {
  for (const char* path :
       {"/v1/../admin",     "/v1/..",           "/v1/.",          "/v1/./a",    "/v1/%2e%2E/admin", "/v1/.%2e",
        "/v1/..;a=b/admin", "/v1/..%3Ba/admin", "/v1/%2e;/admin", "/v1/a%2fb",  "/v1/a%2F..",       "/v1/a%5Cb",
        "/v1/..\\admin",    "/v1/%252e%252e/",  "/v1/%00",        "/v1/%0d%0a", "/v1/%7f",          "/v1/%",
        "/v1/%2",           "/v1/%zz",          "http://o/v1/",   "*",          "/v1/..%3Fa",       "/v1/..%23",
        "/v1/%2e.%3f/a",    "/v1/a/..%3fb/c"}) {
    EXPECT_FALSE(matches("* /*", "GET", path)) << path;
    EXPECT_FALSE(matches("GET /v1/*", "GET", path)) << path;
    EXPECT_FALSE(unambiguous_path(path)) << path;
  }
}

TEST(RequestRule, MatchesNoPathWhoseBytesAreNotOneTextForEveryOrigin) {
  for (const char* path :
       {"%c0%ae%c0%ae/admin", "%c0%af../admin", "%c1%9c", "%e0%80%ae", "%f0%80%80%ae", "%f8%80%80%80%ae", "\xC0\xAE",
        "%ff.%ff./admin", "%80", "%c3", "%c3a", "%c3/%a9", "%e2%82", "%ed%a0%80", "%f4%90%80%80", "%c0%80"}) {
    EXPECT_FALSE(unambiguous_path(std::string("/v1/").append(path))) << path;
  }
}

TEST(RequestRule, MatchesNoPathThatBecomesAnotherOneByNormalization) {
  for (const char* path : {"%EF%BC%8E%EF%BC%8E/admin",  // fullwidth full stops
                           "%E2%80%A5/admin",           // two dot leader
                           "a%EF%BC%8F..%EF%BC%8Fb",    // fullwidth solidus
                           "a%E2%88%95b", "a%EF%BC%BCb", "%EF%BC%85", "x%C2%A5", "%E2%84%80",
                           ".%E2%80%8B./admin",  // zero width space
                           "..%C2%AD/admin", "%EF%BB%BF..", ".../admin", "..%20/admin", "%20../admin", ".%20"}) {
    EXPECT_FALSE(unambiguous_path(std::string("/v1/").append(path))) << path;
  }
}

TEST(RequestRule, IsRefusedIfItCouldMatchNothingOrIsUnclear) {
  for (const char* rule :
       {"", "GET", "/v1/*", " /v1", "GET v1", "GET /v1/*/b", "GET /a?b", "GET /a#b", "GET /a b", "GET  /a", "GET *",
        "GET /../a", "GET /%2e", "GET /a%2Fb", "CONNECT /", "G(T /", "GET /a\n"}) {
    EXPECT_FALSE(RequestRule::parse(rule)) << rule;
  }
}

}  // namespace
}  // namespace carpool::proxy::http
