// Outstanding: what borrowers and messages in flight hold of a destination. Only their owners can count it, so a test
// passes it to Destination::audit().
#pragma once

#include <array>
#include <cstdint>

#include "pool/queue/class_quota.h"

namespace carpool::pool {

struct Outstanding {
  std::uint64_t leases = 0;
  std::uint64_t probes = 0;         // leases of health checks
  std::uint64_t grants = 0;         // messages that bring a connection or a stream
  std::uint64_t stream_grants = 0;  // those that bring a stream
  std::uint64_t rejections = 0;
  std::uint64_t cancels = 0;        // messages that cancel a dial
  std::uint64_t tunnel_places = 0;  // of leases, waiters and messages, with those that wait for one
  std::array<std::uint64_t, ClassQuota::kMaxClasses> by_class{};  // leases and grants, by the class of their share
};

}  // namespace carpool::pool
