// Unit tests of the final GOAWAY of a server, and of streams that its client opens before it is sent.
#include <gtest/gtest.h>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http {
namespace {

// A client would send the excluded request again, so it must not be processed, whatever else of it follows.
TEST(AStreamThatTheFinalGoawayExcludes, IsNotProcessedAlthoughItArrivesBeforeTheFrameIsSent) {
  Pair pair;
  StreamRecord& first = pair.ask();
  pair.exchange_more();
  StreamRecord& late = pair.ask(false);
  pair.client.session.body(*late.stream, "body");
  const std::string crossing = pair.client.pull();
  pair.server.session.goaway(H2Error::no_error);
  EXPECT_TRUE(pair.server.receive(crossing));
  EXPECT_EQ(pair.server.streams.count(3), 0U);
  pair.exchange_more();
  EXPECT_EQ(pair.client.goaway.first, 1);
  EXPECT_TRUE(late.closed);
  EXPECT_EQ(late.reason, H2Error::refused_stream);
  EXPECT_EQ(pair.server.session.streams(), 1U);
  EXPECT_TRUE(pair.server.receive(headers(3, {{"x-late", "1"}}))) << "its trailers were on their way";
  pair.server.session.respond(*pair.server.streams.at(1).stream, fields_of({{":status", "200"}}), true);
  pair.exchange_more();
  EXPECT_EQ(first.response.status, 200);
  EXPECT_TRUE(pair.server.session.over());
  EXPECT_EQ(pair.server.session.connection_error(), "");
}

TEST(AStreamThatTheFinalGoawayExcludes, IsNotIncludedByAnotherOne) {
  Pair pair;
  pair.ask();
  pair.exchange_more();
  pair.ask();
  const std::string crossing = pair.client.pull();
  pair.server.session.goaway(H2Error::no_error);
  pair.server.receive(crossing);
  pair.server.session.goaway(H2Error::no_error);
  pair.exchange_more();
  EXPECT_EQ(pair.client.goaway.first, 1);
}

// Neither if the session ends at once: by its owner, for abuse, or because of an error that only the library detects,
// which then ends the session by itself.
TEST(AStreamThatTheFinalGoawayExcludes, IsNotIncludedByTheEndOfItsSession) {
  std::string pings, continuations = frame(1, 0, 5, block(get()));
  for (int n = 0; n < 1100; ++n) pings += frame(6, 0, 0, "01234567");
  for (int n = 0; n < 2000; ++n) continuations += frame(9, 0, 5, literal("x", "y"));
  const std::string no_window = frame(8, 0, 0, number(0)), no_stream = data(0, "x"),
                    no_block = frame(1, 4, 5, "\xff\xff\xff");
  for (const std::string& end : {std::string(), pings, continuations, no_window, no_stream, no_block}) {
    Pair pair;
    pair.ask();
    pair.exchange_more();
    pair.ask();
    const std::string crossing = pair.client.pull();
    pair.server.session.goaway(H2Error::no_error);
    pair.server.receive(crossing + end);
    if (end.empty()) pair.server.session.terminate(H2Error::enhance_your_calm, H2Abuse::none);
    unsigned goaways = 0;
    for (const Frame& one : frames(pair.server.pull())) {
      if (one.type != 7) continue;
      ++goaways;
      EXPECT_EQ(1U, code(one));
    }
    EXPECT_EQ(2U, goaways);
  }
}

// The GOAWAY is sent between two parts of its head.
TEST(AStreamThatTheFinalGoawayIncludes, IsProcessedAlthoughItsHeadIsIncomplete) {
  Pair pair;
  pair.ask();
  const std::string head = pair.client.pull();
  pair.server.receive(head.substr(0, head.size() - 1));
  ASSERT_NE(pair.server.session.head_began(), kNever);
  pair.server.session.goaway(H2Error::no_error);
  const std::string said = pair.server.pull();
  pair.server.receive(head.substr(head.size() - 1));
  pair.client.receive(said);
  EXPECT_EQ(pair.client.goaway.first, 1);
  EXPECT_EQ(pair.server.streams.count(1), 1U);
}

}  // namespace
}  // namespace carpool::proxy::http
