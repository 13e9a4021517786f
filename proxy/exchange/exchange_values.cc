#include "proxy/exchange/exchange_values.h"

#include "proxy/upstream/connection.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

void AttemptValues::abandon(pool::CloseCause cause, Instant now) {
  const std::optional<pool::CloseCause> unclean = upstream_stream->abandon(cause, lease);
  if (lease) unclean ? lease.discard(*unclean, now) : lease.release(now);
}

void AttemptValues::note_failure(const StreamFailure& failure, Instant now) {
  const bool unanswered = failure.connection_ended && !failure.any_byte_received;
  if (unanswered && lease.reused() && !lease.shared()) lease.note_no_response(now);
  // An origin may close an idle connection at any time, so only the failure of a new connection counts.
  if (!lease.reused() && !failure.unprocessed) static_cast<Connection&>(*lease).note_failure(now);
}

}  // namespace carpool::proxy
