// Settings of a peer that make the window of a stream larger than it may be (RFC 9113 §6.9.2).
#include <gtest/gtest.h>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http {
namespace {

constexpr std::uint32_t kMaxWindow = 0x7FFFFFFF;
constexpr int kFlowControl = static_cast<int>(H2Error::flow_control_error);

std::string initial_window(std::uint32_t size) {
  return frame(4, 0, 0, std::string("\0\x04", 2) + number(size));
}
std::string window_update(unsigned stream, std::uint32_t size) {
  return frame(8, 0, stream, number(size));
}

TEST(AnInitialWindow, ThatOverflowsTheWindowOfAStreamEndsTheSessionOfAClient) {
  for (const std::size_t part : {std::size_t{1}, std::size_t{10}, std::size_t{1000}}) {
    End server(H2Role::server);
    server.receive(preface() + headers(1, get()) + headers(3, get()) + window_update(3, kMaxWindow - 65535));
    EXPECT_EQ(error_of(server.pull(), 0), -1);
    const std::string change = initial_window(65536);
    for (std::size_t at = 0; at < change.size(); at += part) server.receive(change.substr(at, part));
    EXPECT_EQ(error_of(server.pull(), 0), kFlowControl) << part;
    EXPECT_TRUE(server.session.over());
  }
}

TEST(AnInitialWindow, ThatOverflowsTheWindowOfAStreamEndsTheSessionOfAnOrigin) {
  Pair pair;
  pair.ask();
  pair.exchange_more();
  pair.client.receive(window_update(1, kMaxWindow - 65535) + initial_window(65536));
  EXPECT_EQ(error_of(pair.client.pull(), 0), kFlowControl);
  EXPECT_TRUE(pair.client.session.over());
  EXPECT_NE(pair.client.session.connection_error().find("FLOW_CONTROL_ERROR"), std::string::npos);
}

TEST(AnInitialWindow, ThatJustFitsChangesNothingElse) {
  End server(H2Role::server);
  server.receive(preface() + headers(1, get()) + window_update(1, kMaxWindow - 65536) + initial_window(65536) +
                 frame(6, 0, 0, "12345678") + initial_window(0) + initial_window(65536));
  EXPECT_EQ(error_of(server.pull(), 0), -1);
  EXPECT_FALSE(server.session.over());
}

// The frames that this side queues while SETTINGS arrive are not the peer's.
TEST(AnInitialWindow, MayArriveInPartsBetweenResponses) {
  End server(H2Role::server);
  server.receive(preface() + headers(1, get()) + headers(3, get()) + headers(5, get()));
  server.pull();
  const std::string change = initial_window(70000);
  server.receive(change.substr(0, 12));
  for (const StreamId id : {1, 3, 5}) {
    server.session.respond(*server.streams.at(id).stream, fields_of({{":status", "200"}}), true);
  }
  server.receive(change.substr(12));
  EXPECT_EQ(error_of(server.pull(), 0), -1);
  EXPECT_FALSE(server.session.over());
}

TEST(AWindowUpdate, ThatOverflowsTheWindowOfAStreamResetsThisStreamAlone) {
  End server(H2Role::server);
  server.receive(preface() + headers(1, get()) + headers(3, get()) + window_update(3, kMaxWindow));
  const std::string said = server.pull();
  EXPECT_EQ(error_of(said, 3), kFlowControl);
  EXPECT_EQ(error_of(said, 0), -1);
  EXPECT_FALSE(server.streams.at(1).closed);
}

}  // namespace
}  // namespace carpool::proxy::http
