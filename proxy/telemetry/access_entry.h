// AccessEntry: the facts of one exchange for its line in the access log. Views must live until it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::log {

struct AccessEntry {
  Instant began{};                      // when the head was complete
  std::uint64_t loop = 0, request = 0;  // the request's number on its loop
  std::string_view client;              // address
  std::string_view protocol;            // of the client, "HTTP/1.1"; empty: no head was read
  std::string_view tls;                 // version, of the client's connection; empty: plain text
  std::string_view user;                // that its credentials name; empty: none
  std::string_view method, target;
  std::string_view origin;   // label; empty: rejected before routing
  std::uint16_t status = 0;  // 499: the client left before the response head
  std::optional<std::uint16_t> grpc_status;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t connection = 0;                      // id of the upstream connection, 0: none
  std::uint32_t reuse = 0;                           // exchanges it had served before
  std::string_view upstream_protocol, upstream_tls;  // likewise, of the upstream connection
  std::optional<Duration> waited;                    // for the pool
  std::optional<Duration> upstream;                  // from lease to response head
  Duration total{};
  std::string_view opened;  // cause, if the connection was opened for this exchange; else empty
  std::uint32_t retries = 0;
  std::string_view retried;              // the proof of the last retry; empty: none
  std::string_view unrepeated;           // why a failed attempt was not repeated; empty: no such attempt
  bool intercepted = false;              // inside a CONNECT that ended here
  std::string_view tunnelled;            // why a CONNECT to an intercepted origin stayed a tunnel; empty: it did not
  std::string_view trace;                // trace id of the request's traceparent; empty: none
  std::string_view fault;                // error text; empty: none
  std::string_view referer, user_agent;  // fields of the request, for the combined format only
};

}  // namespace carpool::proxy::log
