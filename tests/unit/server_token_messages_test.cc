// Unit tests of the request for a token and of its responses.
#include <gtest/gtest.h>

#include "proxy/http/field_name.h"
#include "proxy/server/oauth2/token_reply.h"
#include "proxy/server/oauth2/token_request.h"

namespace carpool::proxy {
namespace {

config::OAuth2 settings() {
  config::OAuth2 one;
  one.token_url = "https://login.test/oauth2/token?tenant=a";
  one.client_id = "the client";
  one.scope = "read write";
  one.audience = "https://api.test";
  return one;
}

TEST(ATokenRequest, NamesTheClientInAuthorization) {
  http::RequestHead head;
  const auto url = config::parse_token_url(settings().token_url);
  ASSERT_TRUE(url);
  const std::string body = write_token_request(head, settings(), *url, "a:b/c");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "https://login.test/oauth2/token?tenant=a");
  EXPECT_EQ(head.fields.get("host"), "login.test");
  EXPECT_EQ(head.fields.get("content-type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(head.fields.get("authorization"), "Basic dGhlK2NsaWVudDphJTNBYiUyRmM=") << "the+client:a%3Ab%2Fc";
  EXPECT_EQ(body, "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi.test");
  EXPECT_EQ(head.length, body.size());
  for (std::size_t i = 0; i < head.fields.size(); ++i) {
    EXPECT_EQ(head.fields.sensitive(i), http::iequals(head.fields[i].name, "authorization")) << head.fields[i].name;
  }
}

TEST(ATokenRequest, NamesTheClientInTheBodyIfTheServerWantsIt) {
  config::OAuth2 post = settings();
  post.client_authentication = config::ClientAuthentication::post;
  post.audience.clear();
  http::RequestHead head;
  const std::string body = write_token_request(head, post, *config::parse_token_url(post.token_url), "s&t");
  EXPECT_FALSE(head.fields.has("authorization"));
  EXPECT_EQ(body, "grant_type=client_credentials&scope=read+write&client_id=the+client&client_secret=s%26t");
}

TEST(ATokenUrl, IsHttpsOrLeadsToThisHost) {
  for (const char* good :
       {"https://a.test/t", "https://a.test:8443/t?x=y", "http://127.0.0.1:1/t", "http://[::1]:1/"}) {
    EXPECT_TRUE(config::parse_token_url(good)) << good;
  }
  for (const char* bad :
       {"", "a.test/t", "https://a.test", "http://a.test/t", "tcp://a.test:1/t", "https://u:p@a.test/t",
        "https://a.test/a b", "https://a.test/t#x", "https:///t", "http://127.evil.test/t"}) {
    EXPECT_FALSE(config::parse_token_url(bad)) << bad;
  }
}

TEST(ATokenReply, HasATokenAndItsLife) {
  const auto token = read_token(200, R"({"access_token":"abc","token_type":"Bearer","expires_in":60,"x":{}})");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->value, "abc");
  EXPECT_EQ(token->lifetime, std::chrono::seconds(60));
  EXPECT_EQ(read_token(200, R"({"access_token":"a","expires_in":"3599"})")->lifetime, std::chrono::seconds(3599));
  for (const char* life :
       {R"(,"expires_in":-1)", R"(,"expires_in":-1.5)", R"(,"expires_in":null)", R"(,"expires_in":"x")",
        R"(,"expires_in":"-5")", R"(,"expires_in":"5x")", R"(,"expires_in":"1h")", R"(,"expires_in":"60.")", ""}) {
    const auto odd = read_token(200, std::string(R"({"access_token":"a","token_type":"bearer")") + life + "}");
    ASSERT_TRUE(odd) << life;
    EXPECT_EQ(odd->lifetime, std::chrono::minutes(5)) << life;
  }
  EXPECT_EQ(read_token(200, R"({"access_token":"a","expires_in":18446744073709551615})")->lifetime,
            std::chrono::hours(24 * 30));
}

TEST(ATokenReply, MayHaveALifeWithAFraction) {
  for (const char* life : {"3599.7", "3599.0", "\"3599.7\"", "\"3599.0\""}) {
    const auto token = read_token(200, std::string(R"({"access_token":"a","expires_in":)") + life + "}");
    ASSERT_TRUE(token) << life;
    EXPECT_EQ(token->lifetime, std::chrono::seconds(3599)) << life;
  }
  EXPECT_EQ(read_token(200, R"({"access_token":"a","expires_in":1e300})")->lifetime, std::chrono::hours(24 * 30));
}

TEST(ATokenReply, ThatIsNoneSaysWhyAndRepeatsNothing) {
  struct Case {
    unsigned status;
    std::string body, says;
  };
  for (const Case& one :
       {Case{400, R"({"error":"invalid_scope","error_description":"planted"})", "answered 400 invalid_scope"},
        {401, R"({"error":"planted"})", "answered 401"},
        {500, "planted", "answered 500"},
        {302, "", "answered 302"},
        {204, "", "answered 204"},
        {200, "planted", "other than a JSON object"},
        {200, "[\"planted\"]", "other than a JSON object"},
        {200, "", "other than a JSON object"},
        {200, R"({"token":"planted"})", "without access_token"},
        {200, R"({"access_token":""})", "without access_token"},
        {200, R"({"access_token":["planted"]})", "without access_token"},
        {200, R"({"access_token":"planted","token_type":"mac"})", "not of type Bearer"},
        {200, R"({"access_token":"planted\r\nX: y"})", "not a valid field value"},
        {200, R"({"access_token":")" + std::string(9000, 'a') + "\"}", "not a valid field value"},
        {200, std::string(60000, '['), "other than a JSON object"}}) {
    const auto token = read_token(one.status, one.body);
    ASSERT_FALSE(token) << one.body;
    EXPECT_NE(token.fault().detail.find(one.says), std::string::npos) << token.fault().detail;
    EXPECT_EQ(token.fault().detail.find("planted"), std::string::npos) << token.fault().detail;
  }
}

}  // namespace
}  // namespace carpool::proxy
