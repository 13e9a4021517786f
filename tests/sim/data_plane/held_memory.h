// HeldMemory: the bytes that the simulated proxy allocated and has not freed, as the allocator observes them. Memory of
// its peers and of the oracles does not count: a block counts if it is allocated while the proxy runs, and again if it
// is freed then. Per thread.
#pragma once

#include <cstdint>
#include <utility>

namespace carpool::test {

class HeldMemory {
 public:
  static std::int64_t bytes();
  static void restart();       // when no byte is held
  static bool count(bool on);  // returns the previous value

  // Within this scope the proxy runs; or a peer or an oracle.
  class Proxy {
   public:
    Proxy() : before_(count(true)) {}
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;
    ~Proxy() { count(before_); }

   private:
    const bool before_;
  };
  class Peer {
   public:
    Peer() : before_(count(false)) {}
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() { count(before_); }

   private:
    const bool before_;
  };
};

}  // namespace carpool::test
