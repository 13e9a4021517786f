#include <gtest/gtest.h>

#include "proxy/downstream/h2_websocket.h"

namespace carpool::proxy {
namespace {

TEST(AnExtendedConnect, BecomesAHandshakeWithAKeyOfOurOwn) {
  http::RequestHead one, two;
  for (http::RequestHead* head : {&one, &two}) {
    head->method = "CONNECT";
    head->protocol = "websocket";
  }
  const std::string key = ask_for_upgrade(one);
  EXPECT_EQ(one.method, "GET");
  EXPECT_TRUE(one.upgrade);
  EXPECT_EQ(one.fields.get("upgrade"), "websocket");
  EXPECT_EQ(one.fields.get("sec-websocket-key"), key);
  EXPECT_EQ(key.size(), 24U);
  EXPECT_NE(ask_for_upgrade(two), key);
}

TEST(AnExtendedConnect, MayNameWebsocketInAnyCase) {
  http::RequestHead head;
  head.method = "CONNECT";
  head.protocol = "WebSocket";
  EXPECT_EQ(ask_for_upgrade(head).size(), 24U);
  EXPECT_TRUE(head.fields.has("sec-websocket-key"));
}

// The example of RFC 6455 §1.3.
TEST(AHandshake, IsAcceptedByTheResponseToItsKeyAlone) {
  http::ResponseHead head;
  head.fields.add("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_TRUE(accepts(head, "dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_FALSE(accepts(head, "eGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_FALSE(accepts(http::ResponseHead(), "dGhlIHNhbXBsZSBub25jZQ=="));
}

}  // namespace
}  // namespace carpool::proxy
