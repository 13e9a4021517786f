// What an exchange knows of one request, and of one attempt to have it answered. Both are values: an exchange
// constructs them anew and destroys them, so nothing of one request or attempt can be met by the next one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "pool/destination/lease.h"
#include "proxy/exchange/body_rate.h"
#include "proxy/http/message.h"
#include "proxy/http/message_order.h"

namespace carpool::proxy {

class UpstreamStream;

// From the complete head of a request to the end of its exchange.
struct RequestValues {
  // `buffer`: memory of the last request, for `host`.
  explicit RequestValues(std::string&& buffer) : host(std::move(buffer)) { host.clear(); }

  std::string host;           // value of Host for the origin
  std::string_view path;      // in the request's target
  bool connect = false;       // CONNECT: a tunnel from the start
  bool upgrade = false;       // asked for, and passed on
  bool need_h1 = false;       // the origin said that this request wants HTTP/1.1
  bool misdirected = false;   // 421 came once
  bool close_client = false;  // the reply says Connection: close
  bool over_limit = false;    // the body passed max_body
  bool client_eof = false;    // tunnel: the client said FIN
  int max_forwards = -1;
  std::uint32_t idempotent_retries = 0, proven_replays = 0;
  Instant informed_at{};  // the last 1xx
  Instant waiting_since{};
  Instant total_deadline = kNever;
  Instant wait_deadline = kNever;
  BodyRate body_rate;
  Instant slow_at = kNever;  // the body misses body_min_rate then
  Instant look_at = kNever;  // collecting: does the body stream?
};

// From taking a lease to giving it back.
struct AttemptValues {
  // `buffer`: memory of the last attempt, for `trailers`.
  AttemptValues(pool::Lease&& taken, http::Fields&& buffer) : lease(std::move(taken)), trailers(std::move(buffer)) {
    trailers.clear();
  }

  pool::Lease lease;
  UpstreamStream* upstream_stream = nullptr;
  http::Fields trailers;       // of the response
  bool authenticated = false;  // the connection authenticated this client: never another's
  bool origin_eof = false;     // tunnel: the origin said FIN
  std::uint64_t leak = 0;      // the lease was reported as held for too long, under this number
  http::MessageOrder told;  // the order in which the upstream stream tells the response; no byte passes that breaks it
  Instant moved_at{};       // the request moved towards the origin: its last byte, once it was sent
};

}  // namespace carpool::proxy
