// Fault: an error as a value. Network conditions are Faults; impossible states are asserts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace carpool {

enum class FaultKind : std::uint8_t {
  // The client's request cannot be served as it is.
  malformed_request,
  head_timeout,  // the head or the body of the request arrived too slowly
  head_too_large,
  target_too_long,
  body_too_large,
  not_implemented,
  version_not_supported,  // a major version other than 1
  misdirected,            // :authority contradicts Host, or the target is not the listener's fixed origin
  loop_detected,          // the request carries our own Via, or an address of our own listeners
  egress_denied,
  not_authenticated,  // 407
  client_gone,
  draining,
  overloaded,    // memory, descriptors or threads are low
  rate_limited,  // request.rate or the origin's pool.connect_rate
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
  parent_refused,  // the proxy of upstream.proxy refused CONNECT, or asks for other credentials
  budget,          // no descriptor, or no slot of the connection budget
  // The exchange failed on an established connection.
  connection_terminated,
  response_incomplete,
  malformed_response,
  response_head_too_large,
  informational_limit,  // more or larger 1xx heads than one response may have
  response_timeout,
  request_timeout,  // request.timeout; detail names the phase
  internal,
};

enum class Side : std::uint8_t { client, upstream, self };

struct Fault {
  FaultKind kind = FaultKind::internal;
  Side side = Side::self;
  std::string detail;             // for humans: the attempt and its result
  std::string_view challenge;     // of not_authenticated: header lines of the reply, a constant of the program
  std::uint32_t retry_after = 1;  // seconds, of the kinds whose reply has Retry-After
  std::uint8_t grpc = 0;          // the grpc-status of its reply; 0: that of the kind

  Fault(FaultKind k, Side s, std::string d = {}) : kind(k), side(s), detail(std::move(d)) {}
};

}  // namespace carpool
