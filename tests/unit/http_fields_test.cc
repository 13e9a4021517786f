// Unit tests of the properties that a head records about its fields.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/http/forward.h"
#include "proxy/http/h1/codec.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {
namespace {

TEST(AHead, KnowsWhichNamesItHas) {
  Fields fields;
  fields.add("CONNECTION", "close");
  fields.add("x-other", "1");
  for (unsigned id = 1; id < kFieldNames; ++id) {
    const auto name = static_cast<FieldName>(id);
    EXPECT_EQ(fields.may_have(name), name == FieldName::connection) << id;
    EXPECT_EQ(fields.count(name), name == FieldName::connection ? 1U : 0U) << id;
  }
  EXPECT_EQ(fields.get(FieldName::connection), "close");
  fields.clear();
  EXPECT_FALSE(fields.may_have(FieldName::connection));
}

TEST(AHead, ThatIsWipedLeavesNoValueInMemory) {
  const std::string secret(100, 's'), longer(5000, 'l');
  Fields fields;
  fields.wipe(Fields::bytes_of("a", secret) + Fields::bytes_of("b", longer));
  fields.add("a", secret);
  const std::string_view value = fields.get("a");
  fields.add("b", longer);
  EXPECT_EQ(fields.get("a").data(), value.data()) << "the memory did not grow, so no copy is left";
  fields.wipe(0);
  EXPECT_TRUE(fields.empty());
  EXPECT_EQ(value, std::string(secret.size(), '\0'));
}

// Reads a head in pieces of this size.
void read(std::string_view text, std::size_t piece, RequestHead& head) {
  RequestReader reader(Limits{});
  BodyText body;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const Result<ParseResult> fed = reader.feed(text.substr(at, piece), head, body);
    ASSERT_TRUE(fed) << fed.fault().detail;
    ASSERT_EQ(fed->consumed, std::min(piece, text.size() - at));
  }
  EXPECT_FALSE(reader.in_head());
}

TEST(AHead, HasEachFieldInTheUsualFormHoweverItCame) {
  constexpr std::string_view kText =
      "GET / HTTP/1.1\r\nHost: a.test\r\nX-One:1\r\nX-Two: two words\r\nX-Three: 3 \t\r\nX-None:\r\nX-Blank:  \r\n"
      "x-six: 6\r\nX-Seven:\t7\r\nX-Eight: 8\r\n\r\n";
  constexpr std::string_view kLines =
      "Host: a.test\r\nX-One: 1\r\nX-Two: two words\r\nX-Three: 3\r\nX-None: \r\nX-Blank: \r\nx-six: 6\r\nX-Seven: "
      "7\r\n"
      "X-Eight: 8\r\n";
  for (std::size_t piece = 1; piece <= kText.size(); ++piece) {
    RequestHead head;
    read(kText, piece, head);
    ASSERT_EQ(head.fields.size(), 9U) << piece;
    EXPECT_EQ(head.fields.lines(0, 9), kLines) << piece;
    EXPECT_EQ(head.fields[3].value, "3") << piece;
    EXPECT_EQ(head.fields.id(0), FieldName::host) << piece;
  }
}

std::string forwarded(std::string_view fields) {
  RequestHead head;
  read("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n", 1000, head);
  ForwardRules rules;
  rules.host = "a";
  rules.path = "/";
  std::string out;
  write_request(out, head, rules);
  return out;
}

TEST(AHead, IsForwardedWithoutTheFieldsThatConnectionNamesAndWithTheOthers) {
  EXPECT_NE(forwarded("X-Hop: 1\r\nConnection: keep-alive\r\n").find("X-Hop: 1"), std::string::npos);
  EXPECT_EQ(forwarded("X-Hop: 1\r\nConnection: keep-alive, x-hop\r\n").find("X-Hop"), std::string::npos);
  EXPECT_EQ(forwarded("TE: trailers\r\nConnection: keep-alive\r\n").find("TE"), std::string::npos);
  EXPECT_NE(forwarded("TE: trailers\r\nConnection: te\r\n").find("TE: trailers"), std::string::npos);
}

TEST(RequestHead, OfHttp2LeavesNothingToTheNextRequest) {
  RequestHead head;
  head.version = Version::http2;
  head.scheme = "https";
  head.authority = "a.test";
  head.protocol = "websocket";
  head.clear();
  EXPECT_EQ(head.scheme + head.authority + head.protocol, "");
  EXPECT_EQ(head.version, Version::http11);
}

TEST(AHead, ThatTakesAnotherHasItsValuesAndExchangesTheMemory) {
  const std::string value(100, 'v'), older(200, 'o');
  RequestHead head, other;
  head.fields.add("older", older);
  head.scheme = "https";
  const char* const memory = head.fields.get("older").data();
  other.method = "PUT";
  other.target = "/t";
  other.fields.add("connection", value);
  other.fields.mark_sensitive();
  other.version = Version::http2;
  other.framing = Framing::length;
  other.length = 7;
  other.keep_alive = other.lists_fields = false;
  other.expect_continue = other.upgrade = other.ends_later = true;
  other.scheme = "http";
  other.authority = std::string(40, 'a');
  other.protocol = "websocket";
  head = std::move(other);
  EXPECT_EQ(head.method + head.target + head.scheme + head.authority + head.protocol,
            "PUT/thttp" + std::string(40, 'a') + "websocket");
  ASSERT_EQ(head.fields.size(), 1U);
  EXPECT_EQ(head.fields.get(FieldName::connection), value);
  EXPECT_TRUE(head.fields.sensitive(0));
  EXPECT_EQ(head.version, Version::http2);
  EXPECT_EQ(head.framing, Framing::length);
  EXPECT_EQ(head.length, 7U);
  EXPECT_FALSE(head.keep_alive || head.lists_fields);
  EXPECT_TRUE(head.expect_continue && head.upgrade && head.ends_later);
  other.clear();
  EXPECT_TRUE(other.fields.empty() && other.scheme.empty() && other.authority.empty());
  other.fields.add("older", older);
  EXPECT_EQ(other.fields.get("older").data(), memory);
}

TEST(AResponseHead, ThatTakesAnotherHasItsValues) {
  ResponseHead head, other;
  other.status = 404;
  other.reason = "Nothing";
  other.version = Version::http10;
  other.fields.add("a", "b");
  other.framing = Framing::chunked;
  other.length = 3;
  other.keep_alive = other.lists_fields = false;
  other.ends_later = true;
  head = std::move(other);
  EXPECT_EQ(head.status, 404);
  EXPECT_EQ(head.reason, "Nothing");
  EXPECT_EQ(head.version, Version::http10);
  EXPECT_EQ(head.fields.get("a"), "b");
  EXPECT_EQ(head.framing, Framing::chunked);
  EXPECT_EQ(head.length, 3U);
  EXPECT_FALSE(head.keep_alive || head.lists_fields);
  EXPECT_TRUE(head.ends_later);
}

TEST(AHead, HasAnIdentifiedFieldAsIfItHadIdentifiedIt) {
  Fields one, two;
  for (const auto& [name, value] : {std::pair("x", "1"), std::pair("via", ""), std::pair("content-length", "12")}) {
    one.add(name, value);
    two.add(name, value, field_name(name));
  }
  ASSERT_EQ(one.size(), two.size());
  EXPECT_EQ(one.lines(0, one.size()), two.lines(0, two.size()));
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].name, two[i].name);
    EXPECT_EQ(one[i].value, two[i].value);
    EXPECT_EQ(one.id(i), two.id(i));
  }
  EXPECT_TRUE(two.may_have(FieldName::via));
}

}  // namespace
}  // namespace carpool::proxy::http
