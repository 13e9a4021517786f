#include "proxy/exchange/exchange_values.h"

#include "proxy/upstream/connection.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

namespace {
// A session verifies its peer itself when it was idle.
bool idle_before(const pool::Lease& lease, Instant leased) {
  if (lease.reused() || lease.shared()) return lease.reused();
  return static_cast<const Connection&>(*lease).opened_at() < leased - lease.waited();
}
}  // namespace

AttemptValues::AttemptValues(pool::Lease&& taken, Instant leased)
    : lease(std::move(taken)), was_idle(idle_before(lease, leased)) {}

void AttemptValues::abandon(pool::CloseCause cause, Instant now) {
  const std::optional<pool::CloseCause> unclean = upstream_stream->abandon(cause, lease);
  if (lease) unclean ? lease.discard(*unclean, now) : lease.release(now);
}

void AttemptValues::note_failure(const StreamFailure& failure, Instant now) {
  const bool unanswered = failure.connection_ended && !failure.any_byte_received;
  if (unanswered && lease.reused() && !lease.shared()) lease.note_no_response(now);
  if (!was_idle && !failure.unprocessed) static_cast<Connection&>(*lease).note_failure(now);
}

}  // namespace carpool::proxy
