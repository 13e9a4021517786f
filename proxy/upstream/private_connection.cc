#include "proxy/upstream/private_connection.h"

#include <utility>

#include "proxy/upstream/connection.h"

namespace carpool::proxy {

PrivateConnection::PrivateConnection(exec::Loop& loop, exec::Bound on_end, const pool::Destination& destination,
                                     pool::Lease lease)
    : loop_(loop), on_end_(on_end), destination_(&destination), lease_(std::move(lease)) {
  static_cast<Connection&>(*lease_).events = this;
  on_upstream_ready();
}

PrivateConnection::~PrivateConnection() {
  end();
}

pool::Lease PrivateConnection::take() {
  if (lease_ && check_open()) {
    const auto close_cause = static_cast<Connection&>(*lease_).close_cause(loop_.now());
    if (close_cause) end(*close_cause);
  }
  if (lease_) {
    static_cast<Connection&>(*lease_).events = nullptr;
    lease_.use_again();
  }
  return std::move(lease_);
}

void PrivateConnection::on_upstream_ready() {
  if (!check_open()) on_end_();
}

// Returns false if the origin has closed the connection.
bool PrivateConnection::check_open() {
  net::Transport& transport = static_cast<Connection&>(*lease_).transport();
  const bool silent = !transport.hangup_seen() && (!transport.maybe_readable() || transport.no_data_pending());
  if (silent) return true;
  ended_by_origin_ = true;
  end();
  return false;
}

void PrivateConnection::end(pool::CloseCause cause) {
  if (!lease_) return;
  static_cast<Connection&>(*lease_).events = nullptr;
  lease_.discard(cause, loop_.now());
}

}  // namespace carpool::proxy
