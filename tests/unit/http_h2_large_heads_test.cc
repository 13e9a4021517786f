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
    pair.talk_on();
    H2Stream& stream = *pair.server.streams.at(1).stream;
    pair.server.session.respond(stream, fields_of(large(size)), false);
    pair.server.session.body(stream, "hello");
    pair.server.session.end(stream);
    pair.talk_on();
    EXPECT_EQ(asked.response.status, 200) << size;
    EXPECT_EQ(asked.body, "hello") << size;
    EXPECT_EQ(asked.reason, H2Error::no_error) << size;
  }
}

TEST(AHeadThatIsTooLargeToBeSent, ResetsItsStreamAndNoOther) {
  Pair pair(that_take(4U << 20));
  StreamRecord& asked = pair.ask();
  StreamRecord& other = pair.ask();
  pair.talk_on();
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of(large(2U << 20)), false);
  pair.server.session.respond(*pair.server.streams.at(3).stream, fields_of({{":status", "204"}}), true);
  pair.talk_on();
  EXPECT_TRUE(asked.closed && served.closed);
  EXPECT_EQ(asked.reason, H2Error::internal_error);
  EXPECT_EQ(other.response.status, 204);
}

// The usual limit of the library's memory, and a client that reads nothing until all have responded.
class ManyLargeHeads : public ::testing::Test {
 protected:
  static constexpr std::size_t kMemory = std::size_t{4} << 20;
  ManyLargeHeads() : pair_(options()) {}
  void ask(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) pair_.ask();
    pair_.talk_on();
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
    pair_.talk_on();
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
  Pair pair_;

 private:
  static H2Options options() {
    H2Options options;
    options.head.header_bytes = 4U << 20;
    options.memory = kMemory;
    return options;
  }
};

TEST_F(ManyLargeHeads, FillHalfOfTheMemoryAndThoseBeyondResetTheirStreams) {
  ask(245);
  respond_to_all(16'000);
  EXPECT_LE(pair_.server.session.library_memory(), kMemory / 2 + 200'000);
  EXPECT_GE(whole(), 120U);
}

TEST_F(ManyLargeHeads, OfAnySizeLeaveTheMemoryToSendThem) {
  ask(64);
  respond_to_all(120'000);
  EXPECT_GE(whole(), 16U);
  ask(1);
  respond_to_all(120'000);
  EXPECT_GE(whole(), 17U);
}

TEST_F(ManyLargeHeads, MayHaveTrailersAsLarge) {
  Fields trailers;
  trailers.add("x-trailer", std::string(60'000, 't'));
  ask(64);
  respond_to_all(100, trailers);
  EXPECT_EQ(whole(), 64U);
}

TEST_F(ManyLargeHeads, LeaveNoRoomForInterimOnesOfARequestThatIsAnsweredLater) {
  ask(41);
  H2Stream* const last = pair_.server.streams.at(81).stream;
  pair_.server.streams.at(81).stream = nullptr;
  respond_to_all(60'000);
  pair_.server.session.inform(*last, fields_of({{":status", "103"}}));
  pair_.talk_on();
  respond(last, 100);
  EXPECT_GE(whole(), 30U);
  EXPECT_TRUE(pair_.asked.back().ended);
  EXPECT_TRUE(pair_.asked.back().interim.empty());
}

TEST_F(ManyLargeHeads, OfRequestsAreRefusedBeforeTheMemoryIsUsedUp) {
  const std::string value(60'000, 'v');
  List_ list = get();
  list.emplace_back("x-large", value);
  StreamRecord record;
  std::size_t asked = 0;
  while (asked < 200 && pair_.client.session.request(fields_of(list), record, true, false)) ++asked;
  EXPECT_GE(asked, 30U);
  EXPECT_LT(asked, 40U);
  pair_.talk_on();
  EXPECT_EQ(pair_.server.streams.size(), asked);
  EXPECT_EQ(pair_.client.session.abuse(), H2Abuse::none);
}

}  // namespace
}  // namespace carpool::proxy::http
