// Unit tests of requests that wait for a connection, between clients and an origin in memory.
#include <gtest/gtest.h>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

class AWaitingRequest : public test::ExchangeFixture {};

TEST_F(AWaitingRequest, LeavesADialItsTimeOnlyWhereNothingElseCanServeIt) {
  OriginRuntime& runtime = **plane_.origins->at(*pool::parse_origin("http://a.test"));
  runtime.dials = 1;
  test::MemoryWire& first = client();
  send(first, kGetRequest);
  plane_.pass(4s);
  EXPECT_EQ("", first.outgoing) << "wait_timeout has passed, the dial continues";
  connect();
  test::MemoryWire& second = client();
  send(second, kGetRequest);
  ASSERT_EQ(1U, dials());
  plane_.pass(4s);
  EXPECT_TRUE(has(second.outgoing, "wait timed out")) << second.outgoing;
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(has(first.outgoing, "HTTP/1.1 200")) << first.outgoing;
  connect();
}

}  // namespace
}  // namespace carpool::proxy
