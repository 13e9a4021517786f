// Reusability: whether a connection may be lent again, and the causes that follow if not.
#pragma once

#include <cstdint>

#include "pool/policy/cause.h"

namespace carpool::pool {

// Whether a connection can be lent. unwanted: not to this borrower; expired, used_up and idle_too_long close it.
enum class Reusability : std::uint8_t { fit, unwanted, expired, used_up, idle_too_long };
constexpr CloseCause cause_of(Reusability reusability, bool single_use) {
  return reusability == Reusability::expired   ? CloseCause::expired
         : reusability != Reusability::used_up ? CloseCause::idle
         : single_use                          ? CloseCause::policy
                                               : CloseCause::max_usage;
}
// The cause of opening a connection in place of one that closed with `cause`.
constexpr OpenCause replaces(CloseCause cause) {
  switch (cause) {
    case CloseCause::expired:
      return OpenCause::expired;
    case CloseCause::max_usage:
      return OpenCause::max_usage;
    case CloseCause::policy:
      return OpenCause::policy;
    case CloseCause::idle:
    case CloseCause::peer_closed:
      return OpenCause::stale_found;
    case CloseCause::unhealthy:
      return OpenCause::health;
    case CloseCause::dns_changed:
      return OpenCause::dns_changed;
    default:
      return OpenCause::all_busy;
  }
}

}  // namespace carpool::pool
