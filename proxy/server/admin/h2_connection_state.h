// AdminH2State: the states of an AdminH2Connection, as the holder of its role sees them. Checked at compile time: every
// state is reachable, and the connection can be closed in every state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/transitions.h"

namespace carpool::proxy {

enum class AdminH2State : std::uint8_t {
  open,
  to_leave,   // leaves when the requests that have arrived are read, of which there is at least one
  leaving,    // sent GOAWAY, and ends with its last response
  lingering,  // sent FIN, and discards what the client still sends
  closed,
};
inline constexpr std::size_t kAdminH2States = 5;

inline constexpr Transitions<AdminH2State, kAdminH2States> kAdminH2Transitions = [] {
  using enum AdminH2State;
  return Transitions<AdminH2State, kAdminH2States>{
      {open, {to_leave, lingering, closed}},
      {to_leave, {leaving, lingering, closed}},
      {leaving, {lingering, closed}},
      {lingering, {closed}},
  };
}();

static_assert(kAdminH2Transitions.all_reachable_from(AdminH2State::open), "a state that nothing leads to");
static_assert(kAdminH2Transitions.all_may_end_in(AdminH2State::closed), "a client may disconnect in every state");

}  // namespace carpool::proxy
