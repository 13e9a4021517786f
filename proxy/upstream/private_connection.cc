#include "proxy/upstream/private_connection.h"

#include <utility>

namespace carpool::proxy {

PrivateConnection::PrivateConnection(exec::Loop& loop, const OriginRuntime& origin, pool::Lease lease)
    : loop_(loop), origin_(origin), lease_(std::move(lease)) {
  static_cast<Connection&>(*lease_).user = this;
  on_upstream_ready();
}

PrivateConnection::~PrivateConnection() {
  end();
}

pool::Lease PrivateConnection::take() {
  if (lease_) on_upstream_ready();
  if (lease_) {
    const auto close_cause = static_cast<Connection&>(*lease_).close_cause(loop_.now());
    if (close_cause) end(*close_cause);
  }
  if (lease_) static_cast<Connection&>(*lease_).user = nullptr;
  return std::move(lease_);
}

void PrivateConnection::on_upstream_ready() {
  net::Transport& transport = static_cast<Connection&>(*lease_).transport();
  const bool silent = !transport.hangup_seen() && (!transport.maybe_readable() || transport.no_data_pending());
  if (!silent) end();
}

void PrivateConnection::end(pool::CloseCause cause) {
  if (!lease_) return;
  static_cast<Connection&>(*lease_).user = nullptr;
  lease_.discard(cause, loop_.now());
}

}  // namespace carpool::proxy
