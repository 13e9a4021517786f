// ClientAcceptor: the listener's interface to a loop that receives accepted sockets.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "exec/loop.h"

namespace carpool::proxy {

class Listener;

class ClientAcceptor {
 public:
  virtual exec::Loop& loop() = 0;
  // `peer`: address for the log.
  virtual void accept(Listener& listener, Fd socket, std::string peer) LOOP_ONLY = 0;

  // Returns the number of clients that were given to the loop and have not closed. relaxed: an older number makes the
  // distribution of clients less even, nothing else.
  std::uint32_t clients() const { return clients_.load(std::memory_order_relaxed); }
  void expect_client() { clients_.fetch_add(1, std::memory_order_relaxed); }  // call before accept() is sent

 protected:
  ~ClientAcceptor() = default;
  void note_client_closed() { clients_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> clients_{0};
};

}  // namespace carpool::proxy
