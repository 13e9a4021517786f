// RequestValues and AttemptValues: the state of one request, and of one attempt to send it. An exchange constructs and
// destroys them as values, so that no state of one request or attempt reaches the next one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "exec/role.h"
#include "pool/destination/lease.h"
#include "pool/queue/borrower.h"
#include "proxy/exchange/exchange_deadlines.h"
#include "proxy/exchange/retry_state.h"
#include "proxy/exchange/tunnel.h"
#include "proxy/http/message.h"
#include "proxy/http/message_order.h"
#include "proxy/telemetry/span.h"

namespace carpool::proxy {

class UpstreamStream;
struct StreamFailure;

// RequestValues: live from the complete head of a request to the end of its exchange.
struct RequestValues {
  // `buffer`: memory of the previous request, reused for `host`.
  explicit RequestValues(std::string&& buffer) : host(std::move(buffer)) { host.clear(); }

  std::string host;       // value of Host for the origin
  std::string_view path;  // part of the request's target
  Tunnel tunnel;
  bool close_client = false;  // the response carries Connection: close
  bool continued = false;     // the origin has sent 100 (Continue)
  int max_forwards = -1;
  std::uint64_t refused_token = 0;                      // token that the origin did not accept; 0 if none
  std::uint32_t tried = pool::BorrowRequest::kNoEntry;  // entry of the last attempt
  RetryState retries;
  ExchangeDeadlines deadlines;
  std::optional<ActiveSpan> span;  // empty if the request is not sampled
};

// AttemptValues: live from taking a lease to giving it back.
struct AttemptValues {
  AttemptValues(pool::Lease&& taken, Instant leased);
  // Ends an unfinished attempt: gives the upstream stream and the lease back.
  void abandon(pool::CloseCause cause, Instant now) LOOP_ONLY;
  // Reports the failure of the connection to the pool and to the connection's address.
  void note_failure(const StreamFailure& failure, Instant now) LOOP_ONLY;

  pool::Lease lease;
  // The connection was idle before: it had served, or it was open before the attempt asked the pool. An origin closes
  // an idle connection at any moment.
  bool was_idle = false;
  UpstreamStream* upstream_stream = nullptr;
  http::MessageOrder response_order;  // order of the response's parts; a part that violates it is not forwarded
  Instant begun{};                    // the turn in which the head of the request was sent
  std::uint64_t token = 0;            // number of the token that was sent; 0 if none
  bool informed = false;              // a 1xx was received
  bool hedged = false;                // the attempt came from the exchange's HedgedAttempt
  bool authenticated = false;         // the connection authenticated this client and is never lent to another
  std::uint64_t leak = 0;             // number of the leak if the lease was reported as held for too long
  http::Fields trailers;              // trailers of the response
  // Set if the response is read to its end and dropped, because the request is then sent once more.
  std::optional<RetryReason> dropped;
};

}  // namespace carpool::proxy
