// LeakRecord: a lease that was lost or has been held for too long, and its borrower.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace carpool::proxy {

// BorrowerInfo: the holder of a connection. Texts are for diagnostics; credentials in a target are masked.
struct BorrowerInfo {
  std::uint64_t connection = 0;
  std::string request;                   // "GET http://a.example/x"
  std::string phase;                     // phase of the exchange
  std::string client;                    // the client's address
  std::string user;                      // user name in its credentials; empty if none
  std::optional<std::int64_t> pid, uid;  // for a client on a Unix socket or on loopback
  std::string trace_id;                  // trace id of the request's traceparent; empty if none
  Duration held{};
  std::uint64_t bytes_in = 0, bytes_out = 0;  // body bytes so far
};

enum class LeakKind : std::uint8_t {
  held,       // longer than leak_timeout
  lost,       // the lease was destroyed without being returned
  untracked,  // a connection that is in no pool
};

struct LeakRecord {
  std::uint64_t id = 0;
  LeakKind kind = LeakKind::held;
  std::string origin;
  std::string action;  // "report" or "discard"
  Instant found{};
  std::optional<Duration> returned_after;  // duration of the borrow, once it ended
  BorrowerInfo borrower;
};

}  // namespace carpool::proxy
