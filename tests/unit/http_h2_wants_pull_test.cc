// Unit tests of wants_pull(): a session that had nothing to send looks again only after something has happened.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http {
namespace {

H2Stream& stream_asked_for(Pair& pair) {
  pair.ask();
  pair.exchange_more();
  return *pair.server.streams.rbegin()->second.stream;
}

TEST(ASession, WantsToSendWhatEachOfItsFunctionsCauses) {
  Pair pair;
  H2Stream& stream = stream_asked_for(pair);
  H2Session& server = pair.server.session;
  const auto sends = [&] {
    const bool wants = server.wants_pull();
    pair.exchange_more();
    return wants && !server.wants_pull();
  };
  EXPECT_FALSE(server.wants_pull());
  server.inform(stream, fields_of({{":status", "103"}}));
  EXPECT_TRUE(sends());
  server.respond(stream, fields_of({{":status", "200"}}), false);
  EXPECT_TRUE(sends());
  server.body(stream, "body");
  EXPECT_TRUE(sends());
  server.ping(1);
  EXPECT_TRUE(sends());
  server.end(stream);
  EXPECT_TRUE(sends());
  server.announce_shutdown();
  EXPECT_TRUE(sends());
  server.goaway(H2Error::no_error);
  EXPECT_TRUE(sends());
}

TEST(ASession, WantsToSendAgainWhenTheWindowOpens) {
  Pair pair;
  H2Stream& stream = stream_asked_for(pair);
  StreamRecord& asked = pair.asked.back();
  pair.server.session.respond(stream, fields_of({{":status", "200"}}), false);
  pair.server.session.body(stream, std::string(100'000, 'b'));
  pair.exchange_more();
  EXPECT_FALSE(pair.server.session.wants_pull());
  const std::size_t first = asked.body.size();
  ASSERT_LT(first, 100'000U);
  pair.client.session.consume(*asked.stream, first);
  ASSERT_TRUE(pair.client.session.wants_pull());
  ASSERT_TRUE(pair.server.receive(pair.client.pull()));
  EXPECT_TRUE(pair.server.session.wants_pull());
  pair.exchange_more();
  EXPECT_GT(asked.body.size(), first);
}

}  // namespace
}  // namespace carpool::proxy::http
