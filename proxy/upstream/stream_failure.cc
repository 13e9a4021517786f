// StreamFailure: the fate of a request, considering the protocols of its origin and the conditions of its retries.
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

RequestFate StreamFailure::fate(bool reused, bool allows_h1, bool on_reset) const {
  // A further attempt would fail: over HTTP/2 it is refused in the same way, and HTTP/1.1 is not configured.
  if (ask_h1 && !allows_h1) return RequestFate::violated;
  const RequestFate known = fate(reused);
  const bool ended = known == RequestFate::closed_new || (known == RequestFate::violated && stream_reset);
  return ended && on_reset ? RequestFate::reset : known;
}

}  // namespace carpool::proxy
