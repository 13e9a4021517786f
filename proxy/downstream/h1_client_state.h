// The states of an H1Client, of its connection and of the request that it reads, with their transitions. Checked at
// compile time: every state is reachable, and the connection can be closed in every state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/transitions.h"

namespace carpool::proxy {

// H1ClientState: the connection.
enum class H1ClientState : std::uint8_t {
  open,
  closing,    // closes when everything is sent
  truncated,  // likewise, with a reset: its last response is incomplete
  lingering,  // sent FIN, and discards what the client still sends
  resetting,  // resets when the client's kernel has acknowledged everything
  closed,
  handed_over,  // another client took the connection over
};
inline constexpr std::size_t kH1ClientStates = 7;

// H1RequestState: what was read of the current request.
enum class H1RequestState : std::uint8_t {
  none,          // no byte
  head,          // a part of the head
  body_at_hand,  // the head, and the whole body in the same bytes: the exchange begins
  body,          // the head
  complete,      // everything; the exchange runs
  unread,        // a part, and its exchange has ended: the rest is discarded
};
inline constexpr std::size_t kH1RequestStates = 6;

inline constexpr Transitions<H1ClientState, kH1ClientStates> kH1ClientTransitions = [] {
  using enum H1ClientState;
  return Transitions<H1ClientState, kH1ClientStates>{
      {open, {closing, truncated, closed, handed_over}},
      {closing, {lingering, closed}},
      {truncated, {resetting, closed}},
      {lingering, {closed}},
      {resetting, {closed}},
  };
}();

inline constexpr Transitions<H1RequestState, kH1RequestStates> kH1RequestTransitions = [] {
  using enum H1RequestState;
  return Transitions<H1RequestState, kH1RequestStates>{
      {none, {head}},
      {head, {body_at_hand, body, unread}},
      {body_at_hand, {body, unread}},
      {body, {complete, unread}},
      {complete, {none}},
      {unread, {none}},  // the reply came with the head, and the connection persists
  };
}();

static_assert(kH1ClientTransitions.all_reachable_from(H1ClientState::open), "a state that nothing leads to");
static_assert(kH1RequestTransitions.all_reachable_from(H1RequestState::none), "a state that nothing leads to");
static_assert(kH1ClientTransitions.ends_in(H1ClientState::handed_over), "its socket belongs to another client");
static_assert(kH1ClientTransitions.all_may_end_in(H1ClientState::closed, {H1ClientState::handed_over}),
              "a client may disconnect, and the process may end, in every state");

}  // namespace carpool::proxy
