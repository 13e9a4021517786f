// Unit tests of Tunnel: every step of a flow, and when a tunnel is over.
#include "proxy/exchange/tunnel.h"

#include <gtest/gtest.h>

#include <vector>

namespace carpool::proxy {
namespace {

using enum FlowEvent;

struct Step {
  FlowState from;
  FlowEvent event;
  FlowState to;
};

// Every legal step; all others are refused.
const std::vector<Step>& steps() {
  static const std::vector<Step> all{
      {FlowState::shut, open, FlowState::open},         {FlowState::open, bytes, FlowState::open},
      {FlowState::open, fin, FlowState::ending},        {FlowState::open, drained, FlowState::open},
      {FlowState::open, refuse, FlowState::refused},    {FlowState::ending, drained, FlowState::ended},
      {FlowState::ending, refuse, FlowState::ended},    {FlowState::refused, bytes, FlowState::refused},
      {FlowState::refused, fin, FlowState::ended},      {FlowState::refused, drained, FlowState::refused},
      {FlowState::refused, refuse, FlowState::refused}, {FlowState::ended, drained, FlowState::ended},
      {FlowState::ended, refuse, FlowState::ended}};
  return all;
}

FlowState expected(FlowState from, FlowEvent event) {
  for (const Step& step : steps()) {
    if (step.from == from && step.event == event) return step.to;
  }
  return FlowState::illegal;
}

Tunnel opened(TunnelRequest how) {
  Tunnel tunnel;
  tunnel.request(how);
  tunnel.open();
  return tunnel;
}

TEST(AFlow, FollowsItsTableInEveryStateAndEvent) {
  for (std::size_t from = 0; from < kFlowStates; ++from) {
    for (std::size_t event = 0; event < kFlowEvents; ++event) {
      const auto state = static_cast<FlowState>(from);
      const auto what = static_cast<FlowEvent>(event);
      EXPECT_EQ(follow(state, what), expected(state, what)) << "state " << from << ", event " << event;
    }
  }
}

TEST(ATunnel, IsRequestedInOneWayOrNotAtAll) {
  const Tunnel none;
  EXPECT_FALSE(none.requested() || none.connect() || none.upgrade());
  Tunnel tunnel;
  tunnel.request(TunnelRequest::connect);
  EXPECT_TRUE(tunnel.requested() && tunnel.connect() && !tunnel.upgrade());
  EXPECT_DEATH(tunnel.request(TunnelRequest::upgrade), "");
}

TEST(ATunnel, OpensOnceAndOnlyIfItWasRequested) {
  Tunnel none;
  EXPECT_DEATH(none.open(), "");
  Tunnel tunnel = opened(TunnelRequest::upgrade);
  EXPECT_DEATH(tunnel.open(), "");
}

TEST(ATunnel, TakesNoByteBeforeItIsOpen) {
  Tunnel tunnel;
  tunnel.request(TunnelRequest::connect);
  EXPECT_DEATH(tunnel.on_client_bytes(), "");
  EXPECT_DEATH(tunnel.on_client_fin(), "");
  EXPECT_DEATH(tunnel.on_origin_fin(), "");
}

TEST(ATunnel, TakesNothingOfASenderAfterItsFin) {
  Tunnel tunnel = opened(TunnelRequest::connect);
  tunnel.on_client_fin();
  EXPECT_DEATH(tunnel.on_client_bytes(), "");
  EXPECT_DEATH(tunnel.on_client_fin(), "");
  tunnel.on_origin_fin();
  EXPECT_DEATH(tunnel.on_origin_fin(), "");
}

TEST(ATunnel, IsOverWhenBothSidesEndedAndTheClientsBytesAreSent) {
  Tunnel tunnel = opened(TunnelRequest::connect);
  tunnel.on_client_bytes();
  tunnel.on_client_fin();
  tunnel.on_origin_queue(true, 3);
  tunnel.on_origin_fin();
  tunnel.on_origin_queue(true, 3);
  EXPECT_FALSE(tunnel.over()) << "three bytes of the client are queued";
  tunnel.on_origin_queue(true, 0);
  EXPECT_TRUE(tunnel.over());
}

TEST(ATunnel, GoesOnInOneDirectionAfterTheFinOfTheOther) {
  Tunnel tunnel = opened(TunnelRequest::upgrade);
  tunnel.on_origin_fin();
  tunnel.on_origin_queue(true, 0);
  EXPECT_FALSE(tunnel.over());
  tunnel.on_client_bytes();
  tunnel.on_client_fin();
  tunnel.on_origin_queue(true, 0);
  EXPECT_TRUE(tunnel.over());
}

TEST(ATunnel, WaitsForTheOriginsEndIfTheOriginReadsNoMore) {
  Tunnel tunnel = opened(TunnelRequest::connect);
  tunnel.on_origin_queue(false, 0);
  EXPECT_FALSE(tunnel.over());
  tunnel.on_client_bytes();  // dropped
  tunnel.on_origin_fin();
  EXPECT_TRUE(tunnel.over()) << "the client needs no FIN of its own";
}

TEST(ATunnel, DropsTheClientsLastBytesIfTheOriginReadsNoMore) {
  Tunnel tunnel = opened(TunnelRequest::connect);
  tunnel.on_client_fin();
  tunnel.on_origin_fin();
  tunnel.on_origin_queue(false, 100);
  EXPECT_TRUE(tunnel.over());
}

}  // namespace
}  // namespace carpool::proxy
