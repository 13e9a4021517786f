// Unit tests of the fields that an origin's settings may set, and of the heads that carry them.
#include "proxy/http/set_field.h"

#include <string>

#include "proxy/http/forward.h"
#include "proxy/http/h2/fields.h"
#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

Fields credentials() {
  Fields fields;
  fields.add("Authorization", "Bearer planted");
  fields.add("X-Api-Key", "key");
  return fields;
}

ForwardRules setting(const Fields& fields) {
  ForwardRules rules;
  rules.via_pseudonym = "carpool-1a2b3c4d";
  rules.host = "o";
  rules.path = "/s";
  rules.set = &fields;
  return rules;
}

// A request with these fields.
RequestHead request(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  RequestHead head;
  head.method = "GET";
  for (const auto& [name, value] : fields) head.fields.add(name, value);
  return head;
}

std::string sent(const RequestHead& head, const ForwardRules& rules) {
  std::string out;
  write_request(out, head, rules);
  return out;
}

TEST(SetFields, AreAddedToARequestThatHasNone) {
  const Fields set = credentials();
  EXPECT_EQ(sent(request({{"Accept", "*/*"}}), setting(set)),
            "GET /s HTTP/1.1\r\nHost: o\r\nAccept: */*\r\nAuthorization: Bearer planted\r\nX-Api-Key: key\r\n"
            "Via: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(SetFields, ReplaceEveryFieldOfTheirNameInAnySpelling) {
  const Fields set = credentials();
  const RequestHead head = request({{"authorization", "Basic a"}, {"x-API-key", "b"}, {"X-Api-Key", "c"}, {"A", "d"}});
  EXPECT_EQ(sent(head, setting(set)),
            "GET /s HTTP/1.1\r\nHost: o\r\nA: d\r\nAuthorization: Bearer planted\r\nX-Api-Key: key\r\n"
            "Via: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(SetFields, AreSentAlthoughConnectionListsThem) {
  const Fields set = credentials();
  const std::string out = sent(request({{"Connection", "authorization, x-api-key"}}), setting(set));
  EXPECT_NE(out.find("\r\nAuthorization: Bearer planted\r\nX-Api-Key: key\r\n"), std::string::npos) << out;
}

TEST(SetFields, ReplaceFieldsOverHttp2TooAndAreSensitive) {
  const Fields set = credentials();
  H2Fields out;
  h2_request(out, request({{"authorization", "Basic a"}, {"accept", "*/*"}}), setting(set), {"https", {}});
  unsigned found = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!iequals(out[i].name, "authorization") && !iequals(out[i].name, "x-api-key")) continue;
    EXPECT_TRUE(out[i].sensitive) << out[i].name;
    EXPECT_TRUE(out[i].value == "Bearer planted" || out[i].value == "key") << out[i].value;
    ++found;
  }
  EXPECT_EQ(found, 2U);
}

TEST(SetFields, MayHaveAnyNameThatCarpoolDoesNotWriteItself) {
  for (const char* name : {"Authorization", "X-Api-Key", "Cookie", "User-Agent", "api_key"}) {
    EXPECT_EQ(refused_name(name), "") << name;
  }
  for (const char* name : {"Host",
                           "via",
                           "Content-Length",
                           "transfer-encoding",
                           "Connection",
                           "Upgrade",
                           "TE",
                           "Proxy-Authorization",
                           "proxy-Status",
                           "Proxy-Anything",
                           "Expect",
                           "Trailer",
                           "Max-Forwards",
                           "HTTP2-Settings",
                           "Keep-Alive",
                           "WWW-Authenticate",
                           ":path",
                           ":authority",
                           "",
                           "a b",
                           "a:",
                           "a\r\nb",
                           "\xC3\xA4"}) {
    EXPECT_NE(refused_name(name), "") << name;
  }
}

TEST(SetFields, HaveValuesThatEndNoLine) {
  for (const char* value : {"Bearer a.b-c", "a\tb", "\xC3\xA4", "x"}) EXPECT_TRUE(sendable_value(value)) << value;
  for (const char* value : {"", " a", "a ", "\ta", "a\r\nB: c", "a\n", "a\rb", "a\x7F", "a\x01"}) {
    EXPECT_FALSE(sendable_value(value)) << value;
  }
  EXPECT_FALSE(sendable_value(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace carpool::proxy::http
