// HeldMemory: the bytes that the simulated proxy allocated and has not freed, as the allocator sees them. What its
// peers and the oracles allocate does not count: a block counts if it is allocated, and again if it is freed, while the
// proxy runs. Per thread.
#pragma once

#include <cstdint>
#include <utility>

namespace carpool::test {

class HeldMemory {
 public:
  static std::int64_t bytes();
  static void restart();       // at none
  static bool count(bool on);  // returns what it was

  // The proxy runs, in this scope; or a peer or an oracle does.
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
