// Unit tests of heads and trailers that exceed nghttp2's own limit of a header block, and of those beyond ours.
#include <gtest/gtest.h>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http {
namespace {

// A head of `size` bytes, in fields of at most 60,000 bytes.
List_ large(std::size_t size) {
  static const std::string kValue(60000, 'x');
  List_ list{{":status", "200"}};
  for (; size > kValue.size(); size -= kValue.size()) list.emplace_back("x-large", kValue);
  list.emplace_back("x-last", std::string_view(kValue).substr(0, size));
  return list;
}

H2Options that_take(std::uint32_t bytes) {
  H2Options options;
  options.head.header_bytes = bytes;
  options.memory = std::size_t{64} << 20;
  return options;
}

TEST(ALargeHead, ArrivesIfItsReceiverTakesIt) {
  for (const std::size_t size : {60000U, 65537U, 130000U}) {
    Pair pair(that_take(4U << 20));
    StreamRecord& asked = pair.ask();
    pair.exchange_more();
    H2Stream& stream = *pair.server.streams.at(1).stream;
    pair.server.session.respond(stream, fields_of(large(size)), false);
    pair.server.session.body(stream, "hello");
    pair.server.session.end(stream);
    pair.exchange_more();
    EXPECT_EQ(asked.response.status, 200) << size;
    EXPECT_EQ(asked.body, "hello") << size;
    EXPECT_EQ(asked.reason, H2Error::no_error) << size;
  }
}

TEST(AHeadThatIsTooLargeToBeSent, ResetsItsStreamAndNoOther) {
  Pair pair(that_take(4U << 20));
  StreamRecord& asked = pair.ask();
  StreamRecord& other = pair.ask();
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of(large(2U << 20)), false);
  pair.server.session.respond(*pair.server.streams.at(3).stream, fields_of({{":status", "204"}}), true);
  pair.exchange_more();
  EXPECT_TRUE(asked.closed && served.closed);
  EXPECT_EQ(asked.reason, H2Error::internal_error);
  EXPECT_EQ(other.response.status, 204);
}

// The usual limit of the library's memory, and a client that reads nothing until all requests were answered.
class ManyLargeHeads : public ::testing::Test {
 protected:
  static constexpr std::size_t kMemory = std::size_t{4} << 20;
  ManyLargeHeads() : pair_(options()) {}
  void ask(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) pair_.ask();
    pair_.exchange_more();
  }
  void respond(H2Stream* stream, std::size_t size, const Fields& trailers = {}) {
    pair_.server.session.respond(*stream, fields_of(large(size)), false);
    pair_.server.session.body(*stream, "hello");
    pair_.server.session.end(*stream, trailers);
  }
  void respond_to_all(std::size_t size, const Fields& trailers = {}) {
    for (auto& [id, served] : pair_.server.streams) {
      if (served.stream != nullptr) respond(served.stream, size, trailers);
    }
  }
  // Returns how many responses arrived; the streams of the others were reset.
  std::size_t whole() {
    pair_.exchange_more();
    std::size_t count = 0;
    for (const StreamRecord& asked : pair_.asked) {
      EXPECT_TRUE(asked.closed);
      EXPECT_TRUE(asked.ended || asked.reason == H2Error::internal_error);
      count += asked.ended && asked.body == "hello" ? 1 : 0;
    }
    EXPECT_EQ(pair_.server.session.backlog(), 0U);
    EXPECT_EQ(pair_.server.session.streams(), 0U);
    EXPECT_EQ(pair_.server.session.abuse(), H2Abuse::none);
    return count;
  }
  const std::string kInterim = std::string(120'000, 'i');
  Pair pair_;

 private:
  static H2Options options() {
    H2Options options;
    options.head.header_bytes = 4U << 20;
    options.memory = kMemory;
    return options;
  }
};

TEST_F(ManyLargeHeads, WaitForTheMemoryUntilTheClientReads) {
  ask(245);
  respond_to_all(16'000);
  EXPECT_LT(pair_.server.session.library_memory(), kMemory * 7 / 8 + 1000);
  EXPECT_EQ(whole(), 245U);
  ask(60);
  respond_to_all(120'000);
  EXPECT_EQ(whole(), 305U);
}

TEST_F(ManyLargeHeads, BeyondTwiceTheMemoryResetTheirStreams) {
  ask(200);
  respond_to_all(120'000);
  const std::size_t before = whole();
  EXPECT_GE(before, 60U);
  EXPECT_LE(before, 70U);
  ask(1);
  respond_to_all(120'000);
  EXPECT_EQ(whole(), before + 1);
}

TEST_F(ManyLargeHeads, WaitWithTheirBodiesAndTrailers) {
  Fields trailers;
  trailers.add("x-trailer", std::string(60'000, 't'));
  ask(64);
  respond_to_all(60'000, trailers);
  EXPECT_EQ(whole(), 64U);
  for (const StreamRecord& asked : pair_.asked) EXPECT_EQ(asked.trailers.get("x-trailer").size(), 60'000U);
}

TEST_F(ManyLargeHeads, OfResponsesWithoutABodyEndTheirStreams) {
  ask(100);
  for (auto& [id, served] : pair_.server.streams) {
    pair_.server.session.respond(*served.stream, fields_of(large(60'000)), true);
  }
  pair_.exchange_more();
  for (const StreamRecord& asked : pair_.asked) EXPECT_TRUE(asked.ended && asked.closed);
}

TEST_F(ManyLargeHeads, AreForgottenWithTheirStreams) {
  ask(60);
  respond_to_all(120'000);
  std::list<StreamRecord>::iterator asked = pair_.asked.begin();
  for (; asked != pair_.asked.end(); ++asked) pair_.client.session.reset(*asked->stream, H2Error::cancel);
  pair_.server.receive(pair_.client.pull());
  EXPECT_EQ(pair_.server.session.streams(), 0U);
  pair_.exchange_more();
  pair_.asked.clear();
  ask(60);
  respond_to_all(120'000);
  EXPECT_EQ(whole(), 60U);
}

TEST_F(ManyLargeHeads, PrecedeTheResetOfATruncatedResponse) {
  ask(61);
  H2Stream* const last = std::exchange(pair_.server.streams.at(121).stream, nullptr);
  respond_to_all(110'000);
  pair_.server.session.respond(*last, fields_of(large(100)), false);
  pair_.server.session.body(*last, "part");
  pair_.server.session.cut(*last, H2Error::internal_error);
  pair_.exchange_more();
  EXPECT_EQ(pair_.asked.back().body, "part");
  EXPECT_EQ(pair_.asked.back().reason, H2Error::internal_error);
}

TEST_F(ManyLargeHeads, LeaveNoRoomForInterimOnesOfARequestThatIsAnsweredLater) {
  ask(61);
  H2Stream* const last = std::exchange(pair_.server.streams.at(121).stream, nullptr);
  respond_to_all(110'000);
  pair_.server.session.inform(*last, fields_of({{":status", "103"}, {"x-large", std::string_view(kInterim)}}));
  pair_.exchange_more();
  respond(last, 100);
  EXPECT_EQ(whole(), 61U);
  EXPECT_TRUE(pair_.asked.back().interim.empty());
}

TEST_F(ManyLargeHeads, OfRequestsAreRefusedBeforeTheMemoryIsUsedUp) {
  const std::string value(60'000, 'v');
  List_ list = get();
  list.emplace_back("x-large", value);
  StreamRecord record;
  std::size_t asked = 0;
  while (asked < 200 && pair_.client.session.request(fields_of(list), record, true, false)) ++asked;
  EXPECT_GE(asked, 50U);
  EXPECT_LT(asked, 70U);
  pair_.exchange_more();
  EXPECT_EQ(pair_.server.streams.size(), asked);
  EXPECT_EQ(pair_.client.session.abuse(), H2Abuse::none);
}

// A peer may process it: the rest of its head follows in any case.
TEST(ARequestWhoseHeadIsHalfSent, CountsAsBegun) {
  End client(H2Role::client);
  StreamRecord record;
  H2Fields fields = fields_of(get());
  fields.add("x-large", std::string(40'000, 'v'));
  Result<H2Stream*> stream = client.session.request(fields, record, true, false);
  ASSERT_TRUE(stream);
  EXPECT_FALSE((*stream)->head_begun());
  std::string sent;
  do {
    sent = client.pull(1);  // one frame
  } while (sent.size() > 3 && sent[3] != 1);
  ASSERT_GT(sent.size(), 9U);
  EXPECT_EQ(static_cast<unsigned>(sent[4]) & kEndHeaders, 0U);
  EXPECT_TRUE((*stream)->head_begun());
}

}  // namespace
}  // namespace carpool::proxy::http
