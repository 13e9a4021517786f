// DialState: the states of a PendingDial. Checked at compile time: every state is reachable, and every dial can be
// ended in every state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/transitions.h"

namespace carpool::proxy {

enum class DialState : std::uint8_t {
  created,
  rate_limited,  // waits for its turn under pool.connect_rate
  loading,       // waits for the message about the TLS context
  stopping,      // no message will arrive, because the process ends
  failing,       // its fault is reported in the next turn
  dialing,       // from DNS to TLS
  settings,      // HTTP/2: waits for the origin's SETTINGS
  settings_ack,  // waits for the acknowledgement of our SETTINGS
  no_stream,     // waits for a stream: the origin's limit is zero
  orphaned,      // reported to the pool, but exists until the message about the TLS context arrives
  over,          // reported to the pool; destroyed next
};
inline constexpr std::size_t kDialStates = 11;

inline constexpr Transitions<DialState, kDialStates> kDialTransitions = [] {
  using enum DialState;
  return Transitions<DialState, kDialStates>{
      {created, {rate_limited, loading, failing, dialing}},
      {rate_limited, {loading, failing, dialing, over}},
      {loading, {stopping, failing, dialing, over, orphaned}},
      {stopping, {over}},
      {failing, {over}},
      // A dial is repeated after a descriptor was freed, and if certificates were replaced meanwhile.
      {dialing, {dialing, failing, settings, over}},
      // A GOAWAY before the first request, or replaced certificates, lead to another dial.
      {settings, {rate_limited, loading, failing, dialing, settings_ack, no_stream, over}},
      {settings_ack, {rate_limited, loading, failing, dialing, no_stream, over}},
      {no_stream, {rate_limited, loading, failing, dialing, no_stream, over}},
      {orphaned, {over}},
  };
}();

static_assert(kDialTransitions.all_reachable_from(DialState::created), "a state that nothing leads to");
static_assert(kDialTransitions.all_may_end_in(DialState::over, {DialState::created}),
              "the process can end in every state");

}  // namespace carpool::proxy
