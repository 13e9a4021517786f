// OriginShard: the counts of one loop for one origin. Created on the loop's first request there, never freed, written
// by that loop only. About 1.4 KiB, so a thousand pairs of origin and loop take little more than a megabyte.
#pragma once

#include <array>
#include <cstddef>

#include "metrics/counter.h"
#include "metrics/events.h"
#include "metrics/histogram.h"
#include "metrics/request_table.h"

namespace carpool::metrics {

struct alignas(kCacheLine) OriginShard {
  Histogram request;    // head to last byte
  Histogram wait;       // from borrow() to the lease
  Histogram handshake;  // TLS to the origin
  RequestTable requests;
  std::array<Cell, kRetryReasons.size()> retries;
  Cell saved_dials, saved_nanoseconds, saved_cpu_nanoseconds;  // by requests on reused connections
  Cell retries_denied;                                         // by request.retry_budget
  Cell ejections;                                              // of its addresses
  std::array<Cell, kLimits.size()> limited;                    // by kLimits
  std::array<Cell, kUpstreamBounds.size()> bounds;
  std::array<Cell, kResets.size()> resets;
  std::array<Cell, kHedges.size()> hedges;
  std::array<Cell, kIntercepts.size()> intercepts;
  Cell refused;                                            // by its rules
  std::array<Cell, kTokenRequests.size()> token_requests;  // for its requests

  auto& cells(RetryReason) { return retries; }
  auto& cells(Limit) { return limited; }
  auto& cells(Bound) { return bounds; }
  auto& cells(Hedge) { return hedges; }
  auto& cells(Intercept) { return intercepts; }
  auto& cells(TokenRequest) { return token_requests; }
};
static_assert(sizeof(OriginShard) <= 1472);

}  // namespace carpool::metrics
