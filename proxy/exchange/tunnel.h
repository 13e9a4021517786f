// Tunnel: the tunnel that a request may ask for, as two flows of bytes with the same transition table. Pure: the
// exchange reports events, and over() tells whether the tunnel has ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"

namespace carpool::proxy {

// TunnelRequest: how a request asks for a tunnel.
enum class TunnelRequest : std::uint8_t {
  none,
  connect,  // CONNECT: opens with the connection, which carries no byte of the request
  upgrade,  // Upgrade, if the field is forwarded: opens with the origin's 101
};

// FlowState: one direction, from its sender to its receiver.
enum class FlowState : std::uint8_t {
  shut,     // not opened: bytes that the client sends early stay in its client stream
  open,     // bytes may be sent
  ending,   // the sender sent FIN; bytes are still queued for the receiver
  refused,  // the receiver reads no more: the sender's bytes are dropped
  ended,    // the sender sent FIN, and no byte is queued
  illegal,  // the result of an event that must not happen
};
inline constexpr std::size_t kFlowStates = 5;  // without `illegal`

enum class FlowEvent : std::uint8_t {
  open,
  bytes,
  fin,      // the sender sent FIN
  drained,  // no byte is queued for the receiver
  refuse,   // the receiver reads no more
};
inline constexpr std::size_t kFlowEvents = 5;

// clang-format off
inline constexpr auto kFlowTable = [] {
  constexpr auto O = FlowState::open, N = FlowState::ending, R = FlowState::refused, E = FlowState::ended,
                 X = FlowState::illegal;
  return std::array<std::array<FlowState, kFlowEvents>, kFlowStates>{{
      //open bytes fin drained refuse
      {{ O,   X,   X,    X,     X }},    // shut
      {{ X,   O,   N,    O,     R }},    // open
      {{ X,   X,   X,    E,     E }},    // ending
      {{ X,   R,   E,    R,     R }},    // refused
      {{ X,   X,   X,    E,     E }}}};  // ended
}();
// clang-format on

constexpr FlowState follow(FlowState from, FlowEvent event) {
  return kFlowTable[static_cast<std::size_t>(from)][static_cast<std::size_t>(event)];
}
constexpr bool sender_ended(FlowState flow) {
  return flow == FlowState::ending || flow == FlowState::ended;
}
// Returns true if no byte will reach the receiver any more.
constexpr bool done(FlowState flow) {
  return flow == FlowState::refused || flow == FlowState::ended;
}

class Tunnel final {
 public:
  void request(TunnelRequest how) {
    CARPOOL_ASSERT(request_ == TunnelRequest::none && to_origin_ == FlowState::shut);
    request_ = how;
  }
  // Must be called if the field is not forwarded after all.
  void withdraw() {
    CARPOOL_ASSERT(upgrade() && to_origin_ == FlowState::shut);
    request_ = TunnelRequest::none;
  }
  bool requested() const { return request_ != TunnelRequest::none; }
  bool connect() const { return request_ == TunnelRequest::connect; }
  bool upgrade() const { return request_ == TunnelRequest::upgrade; }

  void open() {
    CARPOOL_ASSERT(requested());
    step(to_origin_, FlowEvent::open);
    step(to_client_, FlowEvent::open);
  }
  void on_client_bytes() { step(to_origin_, FlowEvent::bytes); }
  void on_client_fin() { step(to_origin_, FlowEvent::fin); }
  void on_origin_fin() { step(to_client_, FlowEvent::fin); }
  // Reports the state of the queue to the origin. `backlog`: bytes in it.
  void on_origin_queue(bool origin_reads, std::size_t backlog) {
    if (!origin_reads) return step(to_origin_, FlowEvent::refuse);
    if (backlog == 0) step(to_origin_, FlowEvent::drained);
  }
  // Returns true if nothing is left to do. The client stream sends its own queue after the end.
  bool over() const { return sender_ended(to_client_) && done(to_origin_); }

 private:
  static void step(FlowState& flow, FlowEvent event) {
    flow = follow(flow, event);
    CARPOOL_ASSERT(flow != FlowState::illegal);
  }
  TunnelRequest request_ = TunnelRequest::none;
  FlowState to_origin_ = FlowState::shut;
  FlowState to_client_ = FlowState::shut;
};

namespace detail {
// Returns true if `rule(from, event, to)` holds for every cell.
template <class Rule>
constexpr bool every_flow_step(Rule rule) {
  for (std::size_t from = 0; from < kFlowStates; ++from) {
    for (std::size_t event = 0; event < kFlowEvents; ++event) {
      if (!rule(static_cast<FlowState>(from), static_cast<FlowEvent>(event), kFlowTable[from][event])) return false;
    }
  }
  return true;
}
}  // namespace detail

static_assert(detail::every_flow_step([](FlowState from, FlowEvent event, FlowState to) {
                return to == FlowState::illegal || (event == FlowEvent::open) == (from == FlowState::shut);
              }),
              "a flow opens once, and nothing comes before");
static_assert(detail::every_flow_step([](FlowState from, FlowEvent event, FlowState to) {
                const bool sent = event == FlowEvent::bytes || event == FlowEvent::fin;
                return to == FlowState::illegal || !sent || !sender_ended(from);
              }),
              "a sender sends nothing after its FIN");
static_assert(detail::every_flow_step([](FlowState from, FlowEvent, FlowState to) {
                return to == FlowState::illegal || !done(from) || done(to);
              }),
              "no byte reaches a receiver again");

}  // namespace carpool::proxy
