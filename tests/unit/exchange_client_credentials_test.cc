// Unit tests of client credentials: their owner, the challenge, and the verdict on a request.
#include "proxy/exchange/client_credentials.h"

#include <gtest/gtest.h>

#include "proxy/exchange/authentication.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/net/tls/digest.h"

namespace carpool::proxy {
namespace {

using config::CredentialScheme;
using Form = http::ProxyAuthorization::Form;

config::Credential credential(CredentialScheme scheme, std::string name, std::string_view secret) {
  return {scheme, std::move(name), tls::sha256(secret)};
}

const ClientCredentials& both() {
  static const ClientCredentials kBoth(
      {credential(CredentialScheme::basic, "alice", "old"), credential(CredentialScheme::basic, "alice", "new"),
       credential(CredentialScheme::basic, "bob", "b"), credential(CredentialScheme::bearer, "ci", "token")});
  return kBoth;
}

std::string user(Form form, std::string_view name, std::string_view secret) {
  const std::string* const found = both().user_of({form, name, secret});
  return found == nullptr ? "nobody" : *found;
}

TEST(ClientCredentials, BelongToAUser) {
  EXPECT_EQ(user(Form::basic, "alice", "old"), "alice");
  EXPECT_EQ(user(Form::basic, "alice", "new"), "alice");
  EXPECT_EQ(user(Form::basic, "bob", "b"), "bob");
  EXPECT_EQ(user(Form::bearer, {}, "token"), "ci");
}

TEST(ClientCredentials, OfTheFileAloneAreAccepted) {
  EXPECT_EQ(user(Form::basic, "alice", "b"), "nobody");
  EXPECT_EQ(user(Form::basic, "Alice", "old"), "nobody");
  EXPECT_EQ(user(Form::basic, "alice", ""), "nobody");
  EXPECT_EQ(user(Form::basic, "", "old"), "nobody");
  EXPECT_EQ(user(Form::basic, "ci", "token"), "nobody") << "a token is no password";
  EXPECT_EQ(user(Form::bearer, {}, "old"), "nobody") << "a password is no token";
  EXPECT_EQ(user(Form::absent, "alice", "old"), "nobody");
  EXPECT_EQ(user(Form::malformed, "alice", "old"), "nobody");
  EXPECT_EQ(user(Form::absent, {}, "token"), "nobody");
  EXPECT_EQ(user(Form::malformed, {}, "token"), "nobody");
}

TEST(ClientCredentials, AskForTheSchemesThatTheyHave) {
  const ClientCredentials basic({credential(CredentialScheme::basic, "a", "a")});
  const ClientCredentials bearer({credential(CredentialScheme::bearer, "a", "a")});
  EXPECT_EQ(basic.challenge(), "Proxy-Authenticate: Basic realm=\"carpool\", charset=\"UTF-8\"\r\n");
  EXPECT_EQ(bearer.challenge(), "Proxy-Authenticate: Bearer realm=\"carpool\"\r\n");
  EXPECT_EQ(both().challenge(), std::string(basic.challenge()) + std::string(bearer.challenge()));
  EXPECT_FALSE(basic == bearer);
}

TEST(Authentication, JudgesTheFieldsValue) {
  ListenPoint point;
  config::Listen settings;
  point.set(settings);
  std::string who;
  http::Fields fields;
  EXPECT_EQ(authenticate(point, fields, who), std::nullopt) << "the listener asks for nothing";
  point.set(&both());
  using Result = metrics::Authentication;
  EXPECT_EQ(authenticate(point, fields, who), Result::missing);
  fields.add("proxy-authorization", "Basic Ym9iOng=");  // bob:x
  EXPECT_EQ(authenticate(point, fields, who), Result::rejected);
  EXPECT_EQ(who, "");
  fields.clear();
  fields.add("Proxy-Authorization", "Basic Ym9iOmI=");  // bob:b
  EXPECT_EQ(authenticate(point, fields, who), Result::accepted);
  EXPECT_EQ(who, "bob");
  fields.add("Proxy-Authorization", "Basic Ym9iOmI=");
  EXPECT_EQ(authenticate(point, fields, who), Result::malformed);
  const ListenPoint inside(point, std::string("bob"));
  EXPECT_EQ(authenticate(inside, {}, who), std::nullopt) << "the CONNECT was judged";
  EXPECT_EQ(inside.user(), "bob");
}

}  // namespace
}  // namespace carpool::proxy
