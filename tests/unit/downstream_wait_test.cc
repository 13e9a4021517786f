// Unit tests of the wait of an exchange for a connection: how long it waits, and which connections it accepts.
#include <gtest/gtest.h>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

class AWait : public test::ExchangeFixture {
 protected:
  explicit AWait(config::Config settings = {}) : ExchangeFixture(std::move(settings)) {}
};

TEST_F(AWait, LeavesADialItsTimeOnlyWhereNothingElseCanServeIt) {
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

config::Config one_connection() {
  config::Config settings;
  settings.pool.size = 1;
  return settings;
}
class AWaitForTheOnlyConnection : public AWait {
 protected:
  AWaitForTheOnlyConnection() : AWait(one_connection()) {}
};

TEST_F(AWaitForTheOnlyConnection, EndsSoonAfterAnotherRequestGotIt) {
  test::MemoryWire& first = client();
  send(first, kGetRequest);
  test::MemoryWire& second = client();
  send(second, kGetRequest);
  ASSERT_EQ(1U, dials());
  plane_.pass(4s);
  EXPECT_EQ("", second.outgoing) << "only the dial can serve it";
  connect();
  plane_.pass(300ms);
  EXPECT_TRUE(has(second.outgoing, "wait timed out")) << second.outgoing;
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(has(first.outgoing, "HTTP/1.1 200")) << first.outgoing;
}

config::Config idle_for(Duration time) {
  config::Config settings;
  settings.pool.idle_timeout = time;
  return settings;
}
class AWaitWithAShortIdleTimeout : public AWait {
 protected:
  AWaitWithAShortIdleTimeout() : AWait(idle_for(4s)) {}
};

TEST_F(AWaitWithAShortIdleTimeout, AcceptsForABodyNoConnectionThatWasIdleForHalfOfIt) {
  constexpr std::string_view kEmptyPost = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kEmpty);
  plane_.pass(1s);
  send(one, kEmptyPost);
  EXPECT_EQ(0U, dials());
  plane_.from_origin(0, kEmpty);
  plane_.pass(3s);
  send(one, kEmptyPost);
  EXPECT_EQ(1U, dials());
}

}  // namespace
}  // namespace carpool::proxy
