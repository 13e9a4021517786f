// MemoryCheck: the oracle of memory: what the proxy holds is bounded by the numbers of its clients, exchanges and
// connections, whatever they send and however little they read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/held_memory.h"

namespace carpool::test {

// The numbers of the proxy's objects at one moment. streams: the exchanges with HTTP/2 origins.
struct Holders {
  std::int64_t clients = 0, exchanges = 0, streams = 0, connections = 0, origins = 0, loops = 0;
};

class MemoryCheck {
 public:
  explicit MemoryCheck(Account& account) : account_(account) { HeldMemory::restart(); }

  // Must be called after each turn. Memory that is kept for reuse counts for the maximum number of its holders.
  void look(const Holders& now) {
    most_.clients = std::max(most_.clients, now.clients);
    most_.exchanges = std::max(most_.exchanges, now.exchanges);
    most_.streams = std::max(most_.streams, now.streams);
    most_.connections = std::max(most_.connections, now.connections);
    most_.origins = std::max(most_.origins, now.origins);
    most_.loops = now.loops;
    const std::int64_t held = HeldMemory::bytes();
    if (held <= allowed()) return;
    account_.complain("the proxy holds " + std::to_string(held) + " bytes for " + std::to_string(most_.clients) +
                      " clients, " + std::to_string(most_.exchanges) + " exchanges (" + std::to_string(most_.streams) +
                      " of HTTP/2) and " + std::to_string(most_.connections) + " connections");
  }

 private:
  static constexpr std::int64_t kKilo = 1024;
  // The buffer behind a window grows by doubling.
  static constexpr std::int64_t kStream = 2 * 256 * kKilo;
  std::int64_t allowed() const {
    return most_.loops * 128 * kKilo + most_.origins * 64 * kKilo + most_.clients * 512 * kKilo +
           most_.exchanges * 128 * kKilo + most_.streams * kStream + most_.connections * 128 * kKilo;
  }

  Account& account_;
  Holders most_;
};

}  // namespace carpool::test
