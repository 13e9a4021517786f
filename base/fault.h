// Fault: why something could not be done, as a value. Network facts are Faults, impossible things are asserts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace carpool {

enum class FaultKind : std::uint8_t {
  // The client's request cannot be served as it stands.
  malformed_request,
  head_timeout,  // the head came too slowly
  head_too_large,
  target_too_long,
  body_too_large,
  not_implemented,
  version_not_supported,  // a major version other than 1
  misdirected,            // :authority contradicts Host, or the target is none of the listener's fixed origin
  loop_detected,          // our own Via, or an address of our own listeners
  egress_denied,
  client_gone,
  draining,
  overloaded,    // memory or descriptors run short
  rate_limited,  // request.rate or pool.connect_rate of the origin
  // The pool has no connection to give.
  queue_full,
  wait_timeout,
  origins_exhausted,  // max_origins reached
  // The dial failed.
  dns_error,
  dns_timeout,
  connect_refused,
  connect_timeout,
  unroutable,
  tls_certificate,
  tls_protocol,
  budget,  // no descriptor or no place under the total
  // The exchange failed on a connection that was up.
  connection_terminated,
  response_incomplete,
  malformed_response,
  response_head_too_large,
  informational_limit,  // more or larger 1xx heads than one response may have
  response_timeout,
  request_timeout,  // request.timeout; detail names the phase it died in
  internal,
};

enum class Side : std::uint8_t { client, upstream, self };

// What the fault itself says about sending the request again. `if_reused`: only on a connection that had served before.
enum class Retry : std::uint8_t { never, if_reused, always };

struct Fault {
  FaultKind kind = FaultKind::internal;
  Side side = Side::self;
  Retry retry = Retry::never;
  std::string detail;  // for a person: what was tried, what came back

  Fault(FaultKind k, Side s, std::string d = {}, Retry r = Retry::never)
      : kind(k), side(s), retry(r), detail(std::move(d)) {}
};

}  // namespace carpool
