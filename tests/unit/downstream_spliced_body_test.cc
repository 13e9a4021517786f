// Unit tests of response bodies that are spliced from the origin's socket to the client's: the client gets the same
// bytes as from a copied body, in every order of events.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

#include "proxy/net/io_limits.h"
#include "tests/unit/access_log_file.h"
#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest, test::numbered;

constexpr std::size_t kBodySize = 1'000'000;
constexpr std::size_t kOriginPart = 200'000;

class ASplicedBody : public test::ExchangeFixture {
 protected:
  static std::string head(std::size_t size) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  }
  // The origin sends the body in parts.
  void answer(std::size_t n, const std::string& head, std::string_view body, std::size_t part = kOriginPart) {
    plane_.from_origin(n, head);
    for (; !body.empty(); body.remove_prefix(std::min(part, body.size()))) {
      plane_.from_origin(n, body.substr(0, part));
    }
  }
  static std::string_view body_of(const test::MemoryWire& one) {
    const std::string_view all = one.outgoing;
    const std::size_t end = all.find("\r\n\r\n");
    return end == std::string_view::npos ? std::string_view() : all.substr(end + 4);
  }
  const std::string body_ = numbered(kBodySize);
};

TEST_F(ASplicedBody, ReachesTheClientWholeAndLeavesTheConnectionForTheNextRequest) {
  test::MemoryWire& one = asked();
  answer(0, head(kBodySize), body_);
  EXPECT_EQ(body_of(one), body_);
  EXPECT_GT(origin(0).spliced, kBodySize / 2);
  EXPECT_EQ(idle(), 1U);
  one.outgoing.clear();
  send(one, kGetRequest);
  EXPECT_EQ(0U, dials());
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(body_of(one), "hi");
}

TEST_F(ASplicedBody, GoesThroughThePipeInAnySize) {
  for (const std::size_t part : {std::size_t{1000}, std::size_t{40'000}, std::size_t{65'536}, std::size_t{300'000}}) {
    test::MemoryWire& one = client();
    send(one, kGetRequest);
    if (dials() != 0) connect();
    answer(0, head(kBodySize), body_, part);
    ASSERT_EQ(body_of(one), body_) << part;
  }
}

TEST_F(ASplicedBody, IsCopiedIfItIsSmall) {
  asked();
  answer(0, head(20'000), numbered(20'000));
  EXPECT_EQ(origin(0).spliced, 0U);
}

TEST_F(ASplicedBody, IsCopiedIfItHasNoLength) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n");
  plane_.from_origin(0, numbered(200'000) + "\r\n0\r\n\r\n");
  EXPECT_EQ(origin(0).spliced, 0U);
  EXPECT_TRUE(has(one.outgoing, "\r\n0\r\n\r\n"));
}

TEST_F(ASplicedBody, IsCopiedWhereTheSystemCannotSpliceAndItIsAskedOnceASecond) {
  test::MemoryWire& one = asked();
  origin(0).splice_error = EINVAL;
  answer(0, head(kBodySize), body_);
  EXPECT_EQ(body_of(one), body_);
  EXPECT_EQ(origin(0).spliced, 0U);
  EXPECT_EQ(origin(0).refusals, 1U);
  origin(0).splice_error = 0;
  plane_.pass(2s);
  one.outgoing.clear();
  send(one, kGetRequest);
  answer(0, head(kBodySize), body_);
  EXPECT_EQ(body_of(one), body_);
  EXPECT_GT(origin(0).spliced, 0U);
}

TEST_F(ASplicedBody, IsCopiedWhereTheSystemGivesNoPipe) {
  test::MemoryWire& one = asked();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  plane_.from_origin(0, head(kBodySize) + body_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(body_of(one), body_);
  EXPECT_EQ(origin(0).spliced, 0U);
  EXPECT_EQ(idle(), 1U);
}

TEST_F(ASplicedBody, LeavesNoPipeOpenForLongerThanASecondAfterItsUse) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  asked();
  const auto before = descriptors();
  answer(0, head(kBodySize), body_);
  EXPECT_EQ(descriptors(), before + 2);
  plane_.pass(1s);
  plane_.pass(1s);
  EXPECT_EQ(descriptors(), before);
}

TEST_F(ASplicedBody, CountsInTheAccessLog) {
  test::AccessLogFile log;
  asked();
  answer(0, head(kBodySize), body_);
  plane_.pass(1s);  // lines are collected for less than that
  const std::string said = log.text();
  EXPECT_TRUE(has(said, "\"bytes_out\":1000000,")) << said;
}

TEST_F(ASplicedBody, IsSplicedInPartInOneTurnAndTheRestInOthers) {
  const std::string body = numbered(std::size_t{4} << 20);
  test::MemoryWire& one = asked();
  plane_.from_origin(0, head(body.size()));
  exec::assume_on_loop();
  Connection& connection = *plane_.environment.connections.at(0);
  origin(0).incoming.append(body);
  connection.transport().on_readiness({.readable = true});
  connection.events->on_upstream_ready();
  EXPECT_GE(one.outgoing.size(), kTurnBytes);
  EXPECT_LT(one.outgoing.size(), 2 * kTurnBytes);
  plane_.turn();
  EXPECT_EQ(body_of(one), body);
}

TEST_F(ASplicedBody, WaitsForAClientThatDoesNotReadAndHoldsLittleOfIt) {
  test::MemoryWire& one = asked();
  one.room = 1000;
  answer(0, head(kBodySize), body_);
  EXPECT_GE(origin(0).incoming.size(), kBodySize - 300'000) << "the bytes that carpool holds";
  for (int n = 0; n < 2000 && body_of(one).size() < kBodySize; ++n) {
    make_room(one, 1 + static_cast<std::size_t>(n * 37 % 90'000));
    plane_.from_origin(0, "");
  }
  EXPECT_EQ(body_of(one), body_);
  EXPECT_EQ(idle(), 1U);
}

TEST_F(ASplicedBody, IsFollowedByTheNextPipelinedResponse) {
  test::MemoryWire& one = asked();
  send(one, kGetRequest);
  answer(0, head(kBodySize), body_);
  EXPECT_EQ(body_of(one), body_);
  one.outgoing.clear();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(body_of(one), "hi");
}

TEST_F(ASplicedBody, WithBytesBehindItLeavesNoConnectionForTheNextRequest) {
  test::MemoryWire& one = asked();
  answer(0, head(kBodySize), body_ + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen");
  EXPECT_EQ(body_of(one), body_);
  one.outgoing.clear();
  send(one, kGetRequest);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kEmpty);
  EXPECT_FALSE(has(one.outgoing, "stolen"));
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(ASplicedBody, EndsWhereItsLengthEndsThoughMoreBytesAreThere) {
  test::MemoryWire& one = asked();
  const std::string body = numbered(100'000);
  plane_.from_origin(0, head(body.size()) + body + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen");
  EXPECT_EQ(body_of(one), body);
  EXPECT_EQ(idle(), 0U);
}

TEST_F(ASplicedBody, ThatEndsTooEarlyEndsTheClientsConnectionVisibly) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, head(kBodySize));
  plane_.from_origin(0, body_.substr(0, kOriginPart), true);
  EXPECT_EQ(body_of(one), body_.substr(0, kOriginPart));
  EXPECT_TRUE(one.shut || one.gone);
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(ASplicedBody, OfAnOriginThatResetsItsConnectionEndsTheClientsVisibly) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, head(kBodySize));
  plane_.from_origin(0, body_.substr(0, kOriginPart));
  origin(0).splice_error = ECONNRESET;
  plane_.from_origin(0, body_.substr(kOriginPart));
  EXPECT_EQ(body_of(one), body_.substr(0, kOriginPart));
  EXPECT_TRUE(one.shut || one.gone);
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(ASplicedBody, WithUrgentDataInItGoesOn) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, head(kBodySize));
  origin(0).urgent = 100'000;
  plane_.from_origin(0, body_);
  EXPECT_EQ(body_of(one), body_);
  EXPECT_GT(origin(0).spliced, kBodySize / 2);
  EXPECT_EQ(idle(), 1U);
}

TEST_F(ASplicedBody, OfAClientThatLeavesEndsItsConnection) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, head(kBodySize));
  plane_.from_origin(0, body_.substr(0, kOriginPart));
  exec::assume_on_loop();
  clients_.end_all();
  plane_.turn();
  EXPECT_TRUE(one.gone);
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(ASplicedBody, OfAClientThatIsLostEndsItsConnection) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, head(kBodySize));
  one.broken = true;
  plane_.from_origin(0, body_.substr(0, kOriginPart));
  EXPECT_TRUE(origin(0).gone);
  EXPECT_LT(one.outgoing.size(), 1000U);
}

}  // namespace
}  // namespace carpool::proxy
