// Unit tests of the demo origin's response to each path, without sockets.
#include <gtest/gtest.h>

#include "proxy/commands/demo/reply.h"

namespace carpool::proxy {
namespace {

http::RequestHead get(std::string target) {
  http::RequestHead head;
  head.method = "GET";
  head.target = std::move(target);
  return head;
}

DemoReply reply_to(std::string target) {
  return demo_reply(get(std::move(target)), {"HTTP/1.1", 3, 2});
}

TEST(DemoReply, GreetsWithProtocolConnectionAndRequest) {
  const DemoReply reply = demo_reply(get("/"), {"HTTP/1.1 over TLSv1.3", 3, 2});
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.body.find("HTTP/1.1 over TLSv1.3"), std::string::npos);
  EXPECT_NE(reply.body.find("connection  3\n"), std::string::npos);
  EXPECT_NE(reply.body.find("request     2 on this connection: it was reused\n"), std::string::npos);
  EXPECT_NE(demo_reply(get("/"), {"HTTP/1.1", 3, 1}).body.find("it is new"), std::string::npos);
}

TEST(DemoReply, TakesAWholeUriAndAQueryForThePathInThem) {
  EXPECT_EQ(reply_to("http://demo/bytes/7").fill, 7U);
  EXPECT_EQ(reply_to("/bytes/7?again=1").fill, 7U);
  EXPECT_EQ(reply_to("http://demo").status, 200);
  EXPECT_TRUE(reply_to("/echo?to=http://demo/").echo);
}

TEST(DemoReply, TakesTheNumberThatAPathEndsWith) {
  EXPECT_EQ(reply_to("/bytes/0").fill, 0U);
  EXPECT_EQ(reply_to("/bytes/10737418240").fill, 10737418240U);
  EXPECT_EQ(reply_to("/delay/250").delay, std::chrono::milliseconds(250));
  EXPECT_EQ(reply_to("/delay/60000").status, 200);
}

TEST(DemoReply, RefusesNumbersThatAreNoneOrTooLarge) {
  for (const char* target : {"/bytes/", "/bytes/x", "/bytes/1x", "/bytes/-1", "/bytes/99999999999999999999",
                             "/bytes/1099511627777", "/delay/60001", "/delay/1.5", "/delay/ 1"}) {
    const DemoReply reply = reply_to(target);
    EXPECT_EQ(reply.status, 400) << target;
    EXPECT_EQ(reply.fill, 0U) << target;
    EXPECT_EQ(reply.delay, Duration::zero()) << target;
  }
}

TEST(DemoReply, ListsItsPathsWhereThereIsNone) {
  for (const char* target : {"/nowhere", "*", "", "/echo/", "/bytes", "//"}) {
    const DemoReply reply = reply_to(target);
    EXPECT_EQ(reply.status, 404) << target;
    EXPECT_NE(reply.body.find("/delay/MS"), std::string::npos);
  }
}

TEST(DemoReply, SaysThatAConnectionEndsWhenEitherSideWantsIt) {
  const auto head_of = [](const DemoReply& reply, const http::RequestHead& request) {
    std::string out;
    write_demo_head(out, reply, request, {"HTTP/1.1", 1, 1});
    return out;
  };
  http::RequestHead request = get("/close");
  EXPECT_NE(head_of(reply_to("/close"), request).find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(head_of(reply_to("/"), request).find("\r\nConnection:"), std::string::npos);
  request.keep_alive = false;
  EXPECT_NE(head_of(reply_to("/"), request).find("Connection: close\r\n"), std::string::npos);
  request.keep_alive = true;
  request.version = http::Version::http10;
  EXPECT_NE(head_of(reply_to("/"), request).find("Connection: keep-alive\r\n"), std::string::npos);
}

TEST(DemoReply, RefusesBytesThatAreNoRequestWithTheStatusOfTheFault) {
  EXPECT_EQ(demo_refusal({FaultKind::malformed_request, Side::client, "no"}).status, 400);
  EXPECT_EQ(demo_refusal({FaultKind::head_too_large, Side::client}).status, 431);
  EXPECT_EQ(demo_refusal({FaultKind::target_too_long, Side::client}).status, 414);
  EXPECT_EQ(demo_refusal({FaultKind::not_implemented, Side::client}).status, 501);
  EXPECT_TRUE(demo_refusal({FaultKind::malformed_request, Side::client}).close);
}

TEST(DemoReply, FillsWithWholeLinesOf64Bytes) {
  const std::string_view block = demo_fill();
  ASSERT_EQ(block.size() % 64, 0U);
  for (std::size_t at = 0; at < block.size(); at += 64) {
    ASSERT_EQ(block[at + 63], '\n');
    ASSERT_EQ(block.substr(at, 64), block.substr(0, 64));
  }
}

}  // namespace
}  // namespace carpool::proxy
