// OpenCause, CloseCause: the reasons for which connections are opened and closed, counted in the ledger.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carpool::pool {

enum class OpenCause : std::uint8_t {
  first,
  all_busy,
  min_idle,
  warm_up,
  stale_found,
  expired,
  max_usage,
  streams_exhausted,
  loop_local,
  policy,
  dns_changed,
  health,
  reconnect,
  replay,
  tunnel,
  spread,
};
inline constexpr std::array<std::string_view, 16> kOpenCauseNames{
    "first",      "all_busy", "min_idle",    "warm_up", "stale_found", "expired", "max_usage", "streams_exhausted",
    "loop_local", "policy",   "dns_changed", "health",  "reconnect",   "replay",  "tunnel",    "spread"};

enum class CloseCause : std::uint8_t {
  expired,
  idle,
  max_usage,
  peer_closed,
  error,
  unhealthy,
  drained,
  surplus,
  budget,
  leak,
  policy,
  dns_changed,
  goaway,
  private_,
  reconnect,
  config_changed,
  tunnel_ended,
  shutdown,
  rebalanced,
};
inline constexpr std::array<std::string_view, 19> kCloseCauseNames{
    "expired",   "idle",           "max_usage",    "peer_closed", "error",       "unhealthy", "drained",
    "surplus",   "budget",         "leak",         "policy",      "dns_changed", "goaway",    "private",
    "reconnect", "config_changed", "tunnel_ended", "shutdown",    "rebalanced"};

// Returns true if the dial serves a waiter, not future demand.
constexpr bool for_waiters(OpenCause cause) {
  return cause != OpenCause::min_idle && cause != OpenCause::warm_up && cause != OpenCause::loop_local &&
         cause != OpenCause::reconnect && cause != OpenCause::spread;
}

constexpr std::string_view name(OpenCause cause) {
  return kOpenCauseNames[static_cast<std::size_t>(cause)];
}
constexpr std::string_view name(CloseCause cause) {
  return kCloseCauseNames[static_cast<std::size_t>(cause)];
}

}  // namespace carpool::pool
