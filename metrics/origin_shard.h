// OriginShard: the counts of one loop for one origin. Created on the loop's first request there, never freed, written
// by that loop only. About 1.2 KiB, so a thousand pairs of origin and loop take little more than a megabyte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "metrics/request_table.h"

namespace carpool::metrics {

// The reasons that made a retry safe.
inline constexpr std::array<std::string_view, 5> kProofs{"not_sent", "goaway", "refused_stream", "idempotent_reused",
                                                         "misdirected"};

// HTTP/2 error codes of streams reset by origins; rare ones share the last.
inline constexpr std::array<std::string_view, 7> kResets{
    "REFUSED_STREAM", "CANCEL", "INTERNAL_ERROR", "PROTOCOL_ERROR", "NO_ERROR", "HTTP_1_1_REQUIRED", "other"};

// Requests refused, and dials refused or delayed, by an origin's rate limits.
enum class Limit : std::uint8_t { requests, connections };
inline constexpr std::array<std::string_view, 2> kLimits{"requests", "connections"};

// Limits on what an origin may cause for one request.
enum class Bound : std::uint8_t { informational, attempts };
inline constexpr std::array<std::string_view, 2> kUpstreamBounds{"informational", "attempts"};

struct alignas(kCacheLine) OriginShard {
  Histogram request;    // head to last byte
  Histogram wait;       // from borrow() to the lease
  Histogram handshake;  // TLS to the origin
  RequestTable requests;
  std::array<Cell, kProofs.size()> retries;
  Cell saved_dials, saved_nanoseconds, saved_cpu_nanoseconds;  // by requests on reused connections
  Cell retries_denied;                                         // by request.retry_budget
  Cell ejections;                                              // of its addresses
  std::array<Cell, kLimits.size()> limited;                    // by kLimits
  std::array<Cell, kUpstreamBounds.size()> bounds;
  std::array<Cell, kResets.size()> resets;
};
static_assert(sizeof(OriginShard) <= 1280);

}  // namespace carpool::metrics
