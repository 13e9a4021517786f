// RequestPacer: limits the requests that the HTTP/2 clients of one loop begin in a turn. A burst of many clients is
// spread over several turns, so that other clients of the loop do not wait for all of it. After FQ-CoDel (RFC 8290
// §4.1): a client that just became ready may always begin a request; clients with more requests continue in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/intrusive.h"
#include "exec/loop.h"

namespace carpool::proxy {

class PacedClient : public ListHook<struct PacedTag> {
 public:
  virtual void continue_requests() LOOP_ONLY = 0;  // the client's turn; it may call wait() again

 protected:
  ~PacedClient() = default;
};

class RequestPacer final : private exec::Deferred {
 public:
  static constexpr std::uint32_t kClientRequests = 8;  // requests that a client may begin in one turn
  static constexpr std::uint32_t kLoopRequests = 128;  // requests that all clients may begin in one round

  explicit RequestPacer(exec::Loop& loop) : loop_(loop) {}

  // Returns how many requests a client may begin now; at least one if its socket just became ready.
  std::uint32_t allowance() const LOOP_ONLY { return std::min(left_, kClientRequests); }
  std::uint32_t allowance_when_ready() const LOOP_ONLY { return std::max<std::uint32_t>(allowance(), 1); }
  void note_begun() LOOP_ONLY;  // a client began a request
  // Calls continue_requests() of `client` once, at the end of this round or in a later one, after the clients that
  // waited before it.
  void wait(PacedClient& client) LOOP_ONLY;

 private:
  void run() override LOOP_ONLY;  // exec::Deferred: at most once a turn; begins a round
  void run_soon() LOOP_ONLY;

  exec::Loop& loop_;
  std::uint32_t left_ LOOP_LOCAL = kLoopRequests;  // of this round
  List<PacedClient, PacedTag> waiting_ LOOP_LOCAL;
};

}  // namespace carpool::proxy
