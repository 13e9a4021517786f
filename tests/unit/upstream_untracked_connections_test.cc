// Unit tests of the search for connections that are in no pool.
#include "proxy/upstream/untracked_connections.h"

#include <gtest/gtest.h>

#include "pool/directory/directory.h"
#include "tests/unit/data_plane.h"

namespace carpool::proxy {
namespace {

class Untracked : public ::testing::Test {
 protected:
  std::vector<LiveConnection::Info> find_untracked() {
    return connections_.find_untracked(plane_.origins->directory(), plane_.now);
  }
  std::unique_ptr<Connection> stray() {
    net::Dialed dialed;
    dialed.transport = std::make_unique<test::MemoryTransport>(wire_);
    auto made = std::make_unique<Connection>(next_connection_id(), std::move(dialed), plane_.now);
    made->enter_pool("http://a.test");
    return made;
  }

  test::DataPlane plane_;
  test::MemoryWire wire_;
  UntrackedConnections connections_;
};

TEST_F(Untracked, ConnectionsOfAPoolAreNone) {
  exec::assume_on_loop();
  const Result<OriginRuntime*> origin = plane_.origins->at(*pool::parse_origin("http://a.test"));
  ASSERT_TRUE(origin);
  EXPECT_EQ((*origin)->destination->warm_up(1, 1, plane_.now), 1U);
  plane_.environment.connect();
  EXPECT_EQ((*origin)->destination->snapshot(plane_.now).of(pool::ConnectionStatus::idle), 1U);
  EXPECT_TRUE(find_untracked().empty());
  EXPECT_TRUE(find_untracked().empty());
  EXPECT_EQ(connections_.count(), 0U);
}

TEST_F(Untracked, AConnectionThatIsInNoPoolIsReportedOnceAtTheSecondLook) {
  std::unique_ptr<Connection> lost = stray();
  EXPECT_TRUE(find_untracked().empty()) << "it may be on its way";
  EXPECT_EQ(connections_.count(), 0U);
  const std::vector<LiveConnection::Info> found = find_untracked();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, lost->id());
  EXPECT_EQ(found[0].origin, "http://a.test");
  EXPECT_EQ(connections_.count(), 1U);
  EXPECT_TRUE(find_untracked().empty()) << "it is known";
  EXPECT_EQ(connections_.count(), 1U);
  lost.reset();
  EXPECT_TRUE(find_untracked().empty());
  EXPECT_EQ(connections_.count(), 0U);
}

TEST_F(Untracked, AnotherOneIsReportedBesideTheFirst) {
  const std::unique_ptr<Connection> first = stray();
  static_cast<void>(find_untracked());
  const std::unique_ptr<Connection> second = stray();
  EXPECT_EQ(find_untracked().size(), 1U);
  const std::vector<LiveConnection::Info> found = find_untracked();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, second->id());
  EXPECT_EQ(connections_.count(), 2U);
}

}  // namespace
}  // namespace carpool::proxy
