// StreamFailure: the result of an attempt, considering the protocols of its origin and the conditions of its retries.
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

AttemptResult StreamFailure::attempt_result(bool was_idle, bool allows_h1, bool on_reset) const {
  // A further attempt would fail: over HTTP/2 it is refused in the same way, and HTTP/1.1 is not configured.
  if (ask_h1 && !allows_h1) return AttemptResult::violated;
  const AttemptResult known = attempt_result(was_idle);
  const bool ended = known == AttemptResult::closed_new || (known == AttemptResult::violated && stream_reset);
  return ended && on_reset ? AttemptResult::reset : known;
}

}  // namespace carpool::proxy
