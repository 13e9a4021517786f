// Unit tests of clients, exchanges and connections to origins on one loop without a server, a worker or a socket:
// interactions of one request's bytes with those of others.
#include <gtest/gtest.h>

#include "tests/unit/data_plane.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kGet = "GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\n\r\n";
constexpr std::string_view kOther = "GET http://a.test/2 HTTP/1.1\r\nHost: a.test\r\n\r\n";

class TheDataPlane : public ::testing::Test {
 protected:
  TheDataPlane() { exec::assume_on_loop(); }
  ~TheDataPlane() override {
    exec::assume_on_loop();
    clients_.end_all();
    plane_.turn();
  }
  test::MemoryWire& client() {
    exec::assume_on_loop();
    return clients_.add(plane_.listener);
  }
  void send(test::MemoryWire& wire, std::string_view bytes, bool end = false) {
    exec::assume_on_loop();
    clients_.send(wire, bytes, end);
    plane_.turn();
  }
  test::DataPlane plane_;
  test::OwnedClients clients_{plane_.context};
};

TEST_F(TheDataPlane, CarriesARequestToItsOriginAndTheResponseBack) {
  test::MemoryWire& one = client();
  send(one, kGet);
  ASSERT_EQ(1U, plane_.environment.dials.size());
  test::MemoryWire& origin = plane_.environment.connect();
  plane_.turn();
  EXPECT_EQ(0U, origin.outgoing.find("GET /1 HTTP/1.1\r\n")) << origin.outgoing;
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200 OK\r\n")) << one.outgoing;
  EXPECT_TRUE(one.outgoing.ends_with("\r\n\r\nhi")) << one.outgoing;
}

TEST_F(TheDataPlane, UsesTheConnectionOfOneClientForTheNext) {
  test::MemoryWire& one = client();
  test::MemoryWire& other = client();
  send(one, kGet);
  plane_.environment.connect();
  plane_.turn();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
  send(other, kOther);
  EXPECT_TRUE(plane_.environment.dials.empty());
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
  EXPECT_TRUE(other.outgoing.ends_with("\r\n\r\n2")) << other.outgoing;
}

// The interim response of an attempt that is retried must not stay in memory that another client's response uses.
TEST_F(TheDataPlane, LeavesNoByteOfAnInterimResponseToAnotherClient) {
  test::MemoryWire& one = client();
  test::MemoryWire& other = client();
  send(one, kGet);
  plane_.environment.connect();
  plane_.turn();
  plane_.from_origin(0,
                     "HTTP/1.1 103 Early Hints\r\nX-Of: one\r\n\r\nHTTP/1.1 421 Misdirected Request\r\n"
                     "Content-Length: 0\r\n\r\n");
  send(other, kOther);
  while (!plane_.environment.dials.empty()) plane_.environment.connect();
  plane_.turn();
  for (std::size_t n = 0; n < plane_.environment.connections.size(); ++n) {
    plane_.from_origin(n, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  }
  EXPECT_EQ(std::string::npos, other.outgoing.find("X-Of")) << other.outgoing;
  EXPECT_EQ(std::string::npos, other.outgoing.find("x-of")) << other.outgoing;
}

TEST_F(TheDataPlane, AnswersPipelinedRequestsInOrder) {
  test::MemoryWire& one = client();
  send(one, std::string(kGet).append(kOther));
  test::MemoryWire& origin = plane_.environment.connect();
  plane_.turn();
  EXPECT_EQ(std::string::npos, origin.outgoing.find("GET /2"));
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
  EXPECT_NE(std::string::npos, origin.outgoing.find("GET /2"));
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond");
  const std::size_t first = one.outgoing.find("first"), second = one.outgoing.find("second");
  EXPECT_LT(first, second);
  EXPECT_NE(std::string::npos, second);
}

TEST_F(TheDataPlane, EndsAResponseVisiblyThatItsOriginTruncates) {
  test::MemoryWire& one = client();
  send(one, kGet);
  plane_.environment.connect();
  plane_.turn();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true);
  EXPECT_TRUE(one.outgoing.ends_with("half")) << one.outgoing;
  EXPECT_TRUE(one.shut);
}

TEST_F(TheDataPlane, SendsNoMoreThanSixtyFourInterimResponses) {
  test::MemoryWire& one = client();
  send(one, kGet);
  plane_.environment.connect();
  plane_.turn();
  for (int i = 0; i < 100 && one.outgoing.find(" 502 ") == std::string::npos; ++i) {
    plane_.from_origin(0, "HTTP/1.1 103 Early Hints\r\n\r\n");
  }
  EXPECT_NE(std::string::npos, one.outgoing.find(" 502 "));
}

TEST_F(TheDataPlane, CancelsAWaitingRequestWhenItsClientDisconnects) {
  test::MemoryWire& one = client();
  send(one, kGet);
  const OriginRuntime& origin = **plane_.origins->at(*pool::parse_origin("http://a.test"));
  EXPECT_EQ(1U, origin.destination->snapshot(plane_.now).waiting);
  send(one, "", true);
  plane_.pass(plane_.listen.half_close + 1s);
  EXPECT_EQ(0U, origin.destination->snapshot(plane_.now).waiting);
  EXPECT_EQ("", one.outgoing);
}

TEST_F(TheDataPlane, AnswersWhenTheWaitForAConnectionTimesOut) {
  test::MemoryWire& one = client();
  send(one, kGet);
  plane_.pass(1h);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 50")) << one.outgoing;
}

// Returns one HTTP/2 frame.
std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, std::string_view payload) {
  std::string bytes;
  for (const unsigned shift : {16U, 8U, 0U}) bytes.push_back(static_cast<char>(payload.size() >> shift & 0xFF));
  bytes.append({static_cast<char>(type), static_cast<char>(flags), 0, 0, 0, static_cast<char>(stream)});
  return bytes.append(payload);
}

TEST_F(TheDataPlane, RefusesTheIncompletePrefaceOfAClientThatReadsNothingOnce) {
  exec::assume_on_loop();
  plane_.listen.header_timeout = 5s;
  plane_.listen.idle_timeout = 20s;
  plane_.listener.change(plane_.listen);
  test::MemoryWire& one = client();
  one.room = 0;
  send(one, "PRI * HT");
  plane_.pass(5s);
  plane_.pass(6s);
  clients_.make_room(one, SIZE_MAX);
  plane_.turn();
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408 "));
  EXPECT_EQ(std::string::npos, one.outgoing.find("HTTP/1.1 408 ", 1));
}

// Readiness is edge-triggered: input that waits because the write queue is full gets no event of its own.
TEST_F(TheDataPlane, ReadsWhatAnHttp2ClientSentWhileItsWriteQueueWasFull) {
  exec::assume_on_loop();
  const std::string window("\0\x20\0\0", 4);  // 2 MiB
  test::MemoryWire& one = client();
  send(one, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  send(one, frame(4, 0, 0, std::string("\0\x04", 2) + window) + frame(8, 0, 0, window) +
                frame(1, 5, 1,
                      "\x82\x86\x84\x41\x06"
                      "a.test"));
  plane_.environment.connect();
  plane_.turn();
  one.room = 0;
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 120000\r\n\r\n" + std::string(120'000, 'x'));
  send(one, frame(6, 0, 0, "12345678"));
  ASSERT_FALSE(one.incoming.empty()) << "the write queue is not full";
  one.outgoing.clear();
  exec::assume_on_loop();
  clients_.make_room(one, SIZE_MAX);
  plane_.turn();
  EXPECT_TRUE(one.incoming.empty());
  EXPECT_NE(std::string::npos, one.outgoing.find(frame(6, 1, 0, "12345678"))) << "PING is not acknowledged";
  EXPECT_LT(120'000U, one.outgoing.size());
}

// A head of 20 bytes, one of which never arrives, on stream 3.
std::string most_of_a_head() {
  return std::string("\0\0\x14\1\5\0\0\0\3", 9) + "\x82\x86\x84";
}

// A client of HTTP/2 that does not read a response of this many bytes, and whose next head never ends.
class AnUnfinishedHead : public TheDataPlane {
 protected:
  AnUnfinishedHead() {
    plane_.listen.header_timeout = 3s;
    plane_.listen.idle_timeout = 20s;
    plane_.listener.change(plane_.listen);
  }
  test::MemoryWire& stuck_behind(std::size_t response) {
    const std::string window("\0\x20\0\0", 4);  // 2 MiB
    test::MemoryWire& one = client();
    send(one, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send(one, frame(4, 0, 0, std::string("\0\x04", 2) + window) + frame(8, 0, 0, window) +
                  frame(1, 5, 1,
                        "\x82\x86\x84\x41\x06"
                        "a.test"));
    plane_.environment.connect();
    plane_.turn();
    if (response != 0) one.room = 0;
    send(one, most_of_a_head());
    plane_.from_origin(
        0, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(response) + "\r\n\r\n" + std::string(response, 'x'));
    one.outgoing.clear();
    return one;
  }
  // The first to be closed is the client of HTTP/1.1 that read the preface.
  bool closed() const { return clients_.closed.size() == 2; }
  // The error code of the GOAWAY that was sent; -1: none was.
  static int goaway_of(const test::MemoryWire& one) {
    int error = -1;
    for (std::size_t at = 0; at + 9 <= one.outgoing.size(); at += 9 + test::number_at(one.outgoing, at, 3)) {
      if (one.outgoing[at + 3] == 7) error = static_cast<int>(test::number_at(one.outgoing, at + 13, 4));
    }
    return error;
  }
};

TEST_F(AnUnfinishedHead, EndsWithAGoawayWhereTheClientReads) {
  const test::MemoryWire& one = stuck_behind(0);
  plane_.pass(2s);
  EXPECT_FALSE(one.shut || one.gone);
  plane_.pass(2s);
  EXPECT_EQ(11, goaway_of(one)) << "ENHANCE_YOUR_CALM";
  EXPECT_TRUE(one.shut || one.gone);
}

TEST_F(AnUnfinishedHead, EndsAtItsTimeThoughTheClientReadsNothing) {
  stuck_behind(30'000);
  plane_.pass(2s);
  EXPECT_FALSE(closed());
  plane_.pass(2s);
  EXPECT_TRUE(closed()) << "no GOAWAY can be sent";
}

// The rest of the head is not read either, so its deadline does not apply.
TEST_F(AnUnfinishedHead, EndsAtTheIdleTimeoutWhereTheClientLeavesTooMuchUnread) {
  stuck_behind(120'000);
  plane_.pass(4s);
  EXPECT_FALSE(closed());
  plane_.pass(20s);
  EXPECT_TRUE(closed());
}

// END_STREAM after the last window of a connection leaves no byte and no request that would wait for it.
TEST_F(TheDataPlane, LeavesAnHttp2ClientThatNeverOpensTheWindowOfItsConnection) {
  const std::string window("\0\x20\0\0", 4);  // 2 MiB, of a stream
  test::MemoryWire& one = client();
  send(one, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  send(one, frame(4, 0, 0, std::string("\0\x04", 2) + window) + frame(1, 5, 1,
                                                                      "\x82\x86\x84\x41\x06"
                                                                      "a.test"));
  plane_.environment.connect();
  plane_.turn();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 120000\r\n\r\n" + std::string(120'000, 'x'));
  send(one, frame(1, 5, 3, "\x82\x86\x84\xbe"));
  if (!plane_.environment.dials.empty()) plane_.environment.connect();
  plane_.turn();
  plane_.from_origin(plane_.environment.connections.size() - 1,
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  send(one, frame(3, 0, 1, std::string("\0\0\0\x08", 4)));
  plane_.pass(plane_.listen.idle_timeout + 1s);
  EXPECT_TRUE(one.shut || one.gone);
}

TEST_F(TheDataPlane, CountsAnOriginThatFallsSilentAsOneFailure) {
  for (const std::string_view part : {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"}) {
    test::MemoryWire& one = client();
    send(one, kGet);
    plane_.environment.connect();
    plane_.turn();
    const OriginRuntime& origin = **plane_.origins->at(*pool::parse_origin("http://a.test"));
    const std::uint64_t before = origin.destination->snapshot(plane_.now).failed_total();
    if (!part.empty()) plane_.from_origin(plane_.environment.connections.size() - 1, part);
    plane_.pass(origin.request.response_header_timeout + 1s);
    EXPECT_EQ(before + 1, origin.destination->snapshot(plane_.now).failed_total()) << one.outgoing;
  }
}

TEST_F(TheDataPlane, GivesAClientThatBeginsWithThePrefaceToHttp2) {
  test::MemoryWire& one = client();
  send(one, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  ASSERT_EQ(1U, clients_.h2.size());
  plane_.turn();
  ASSERT_GE(one.outgoing.size(), 9U);
  EXPECT_EQ(4, one.outgoing[3]) << "the first frame is SETTINGS";
}

// More than a batch copies: the batch refers to the bytes until it is sent.
TEST_F(TheDataPlane, SendsTheBytesAnHttp2ClientSentBeforeItsTunnelOpened) {
  std::string early(15'000, '\0');
  for (std::size_t at = 0; at < early.size(); ++at) early[at] = static_cast<char>('a' + at % 23);
  test::MemoryWire& one = client();
  send(one, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const std::string head = std::string("\x02\x07") + "CONNECT" + "\x41\x0a" + "a.test:443";
  send(one, frame(4, 0, 0, "") + frame(1, 4, 1, head) + frame(0, 0, 1, early));
  ASSERT_EQ(1U, plane_.environment.dials.size());
  const test::MemoryWire& origin = plane_.environment.connect();
  plane_.turn();
  EXPECT_EQ(early, origin.outgoing);
  send(one, frame(0, 1, 1, "late"));
  EXPECT_EQ(early + "late", origin.outgoing);
  EXPECT_TRUE(origin.shut);
}

TEST_F(TheDataPlane, SendsGoawayToAnHttp2ClientWhenItDrains) {
  test::MemoryWire& one = client();
  send(one, std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").append(std::string("\0\0\0\4\0\0\0\0\0", 9)));
  ASSERT_EQ(1U, clients_.h2.size());
  one.outgoing.clear();
  {
    exec::assume_on_loop();
    clients_.h2.front()->drain();
  }
  plane_.turn();
  bool goaway = false;
  for (std::size_t at = 0; at + 9 <= one.outgoing.size();) {
    goaway |= one.outgoing[at + 3] == 7;
    at += 9 + test::number_at(one.outgoing, at, 3);
  }
  EXPECT_TRUE(goaway);
}

}  // namespace
}  // namespace carpool::proxy
