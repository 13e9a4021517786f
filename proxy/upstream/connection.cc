#include "proxy/upstream/connection.h"

#include <utility>

namespace carpool::proxy {

std::uint64_t next_connection_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: only unique, orders nothing
}

Connection::Connection(std::uint64_t id, net::Dialed dialed, Instant now)
    : transport_(std::move(dialed.transport)),
      id_(id),
      opened_at_(now),
      local_(dialed.local.text()),
      peer_(dialed.peer.text()),
      security_(transport_->security()) {}

// A response and its FIN may have come in one event: whoever rests without a look at the wire never sees that FIN
// again.
bool Connection::settle() {
  user = nullptr;
  if (transport_->hangup_seen()) return false;
  return transport_->settled() || transport_->quiet();
}

}  // namespace carpool::proxy
