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

}  // namespace
}  // namespace carpool::proxy::http
