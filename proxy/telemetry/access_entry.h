// AccessEntry: the data of one exchange for its line in the access log. Views must live until the line is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::log {

struct AccessEntry {
  Instant began{};                      // when the head was complete
  std::uint64_t loop = 0, request = 0;  // the request's number on its loop
  std::string_view client;              // the client's address
  std::string_view protocol;            // the client's protocol, such as "HTTP/1.1"; empty if no head was read
  std::string_view tls;                 // TLS version of the client's connection; empty for plain text
  std::string_view user;                // user name in the client's credentials; empty if none
  std::string_view method, target;
  std::string_view origin;   // label; empty if the request was rejected before routing
  std::uint16_t status = 0;  // 499: the client left before the response head
  std::optional<std::uint16_t> grpc_status;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t connection = 0;                      // id of the upstream connection; 0 if none
  std::uint32_t reuse = 0;                           // number of exchanges that it had served before
  std::string_view upstream_protocol, upstream_tls;  // protocol and TLS version of the upstream connection
  std::optional<Duration> waited;                    // time spent waiting for a connection
  std::optional<Duration> upstream;                  // time from the lease to the response head
  Duration total{};
  std::string_view opened;  // cause, if the connection was opened for this exchange; otherwise empty
  std::uint32_t retries = 0;
  std::string_view retried;              // reason for the last retry; empty if none
  std::string_view hedge;                // result of the last hedged attempt; empty if none
  std::string_view unrepeated;           // why a failed attempt was not repeated; empty if there was none
  bool intercepted = false;              // inside a CONNECT that carpool intercepted
  std::string_view tunnelled;            // why a CONNECT to an intercepted origin stayed a tunnel; otherwise empty
  std::string_view trace;                // trace id of the request's traceparent; empty if none
  std::string_view fault;                // error text; empty if none
  std::string_view referer, user_agent;  // request fields, for the combined format only
};

}  // namespace carpool::proxy::log
