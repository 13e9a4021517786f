// Unit tests of the retirement of sessions to addresses that are gone.
#include "proxy/upstream/retire_outdated.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <variant>

#include "pool/destination/snapshot.h"
#include "tests/unit/data_plane.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

// SingleStreamSession: a session without a protocol, for one request at a time.
class SingleStreamSession final : public Connection {
 public:
  using Connection::Connection;
  pool::Protocol protocol() const override { return pool::Protocol::h2; }
  bool clean_for_reuse() override { return true; }
};

struct Holder final : pool::Borrower {
  void on_lease(pool::Lease granted) override { lease = std::move(granted); }
  void on_refused(Fault fault) override { ADD_FAILURE() << fault.detail; }
  pool::Lease lease;
};

// Gives `holder` a lease of a new session to `address`.
void open_session(test::DataPlane& plane, pool::Destination& destination, net::AddressSet& addresses,
                  const net::Address& address, Holder& holder) {
  ASSERT_TRUE(std::holds_alternative<pool::Waiting>(destination.borrow(holder, pool::BorrowRequest{}, plane.now)));
  ASSERT_EQ(1U, plane.environment.dials.size());
  auto reservation = std::move(plane.environment.dials.front().reservation);
  plane.environment.dials.pop_front();
  net::Dialed dialed;
  dialed.transport = std::make_unique<test::MemoryTransport>(plane.environment.wires.emplace_back());
  auto made = std::make_unique<SingleStreamSession>(next_connection_id(), std::move(dialed), plane.now);
  made->track_address(addresses, address);
  made->enter_pool(destination.label());
  destination.dialed(std::move(*reservation), std::move(made), plane.now);
  plane.turn();
  ASSERT_TRUE(holder.lease);
}

TEST(Sessions, ToAnAddressThatIsGoneRetireOneAfterTheOtherThoughTheFirstStillDrains) {
  exec::assume_on_loop();
  net::AddressSet addresses;
  test::DataPlane plane;
  Holder first, second;
  const net::Address gone = *net::Address::parse("10.0.0.1:80");
  addresses.learn({gone}, plane.now);
  pool::Destination& destination = *(**plane.origins->at(*pool::parse_origin("http://a.test"))).destination;
  for (Holder* holder : {&first, &second}) {
    ASSERT_NO_FATAL_FAILURE(open_session(plane, destination, addresses, gone, *holder));
  }
  plane.now += 31s;
  addresses.learn({*net::Address::parse("10.0.0.2:80")}, plane.now);
  const auto draining = [&] { return destination.snapshot(plane.now).of(pool::ConnectionStatus::draining); };
  EXPECT_TRUE(retire_outdated(destination, plane.loop.id(), plane.now)) << "the other one follows later";
  EXPECT_EQ(1U, draining());
  plane.now += 200ms;
  EXPECT_FALSE(retire_outdated(destination, plane.loop.id(), plane.now));
  EXPECT_EQ(2U, draining());
  for (Holder* holder : {&first, &second}) holder->lease.release(plane.now);
  plane.turn();
}

TEST(Sessions, ToAnAddressThatNewRulesForbidRetireAtOnce) {
  exec::assume_on_loop();
  net::AddressSet addresses;
  test::DataPlane plane;
  Holder first, second;
  pool::Destination& destination = *(**plane.origins->at(*pool::parse_origin("http://a.test"))).destination;
  for (Holder* holder : {&first, &second}) {
    ASSERT_NO_FATAL_FAILURE(open_session(plane, destination, addresses, *net::Address::parse("10.0.0.1:80"), *holder));
  }
  EXPECT_FALSE(addresses.apply_policy(*plane.policy, destination.origin()));
  EXPECT_FALSE(addresses.has_retiring(plane.now));
  config::Egress rules;
  rules.deny = {"10.0.0.0/8"};
  const auto policy = net::EgressPolicy::make(rules);
  ASSERT_TRUE(policy);
  EXPECT_TRUE(addresses.apply_policy(**policy, destination.origin()));
  EXPECT_TRUE(addresses.has_retiring(plane.now));
  EXPECT_FALSE(retire_outdated(destination, plane.loop.id(), plane.now));
  EXPECT_EQ(2U, destination.snapshot(plane.now).of(pool::ConnectionStatus::draining));
  for (Holder* holder : {&first, &second}) holder->lease.release(plane.now);
  plane.turn();
  EXPECT_EQ(2U, destination.snapshot(plane.now).closed[static_cast<std::size_t>(pool::CloseCause::policy)]);
}

// A connection in use closes when it is released.
TEST(Connections, ToAnAddressThatNewRulesForbidServeNoFurtherRequest) {
  net::AddressSet addresses;
  test::MemoryWire wire;
  const Instant now{1h};
  const pool::Origin origin = *pool::parse_origin("http://a.test");
  net::Dialed dialed;
  dialed.transport = std::make_unique<test::MemoryTransport>(wire);
  Connection connection(next_connection_id(), std::move(dialed), now);
  connection.track_address(addresses, *net::Address::parse("10.0.0.1:80"));
  EXPECT_EQ(connection.close_cause(now), std::nullopt);
  config::Egress rules;
  rules.deny = {"10.0.0.0/8"};
  const auto policy = net::EgressPolicy::make(rules);
  ASSERT_TRUE(policy);
  addresses.apply_policy(**policy, origin);
  EXPECT_EQ(connection.close_cause(now), pool::CloseCause::policy);
}

}  // namespace
}  // namespace carpool::proxy
