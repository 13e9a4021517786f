// The header of the PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): a load balancer sends it before
// the client's bytes. A pure parser.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "proxy/net/address.h"

namespace carpool::proxy::net {

struct ProxyHeader {
  // Includes the type-length-values that a load balancer adds; they are skipped.
  static constexpr std::size_t kMaxSize = 2048;
  enum class State : std::uint8_t { incomplete, malformed, complete };
  State state = State::incomplete;
  std::size_t size = 0;           // of a complete one
  std::optional<Address> client;  // absent: LOCAL or UNKNOWN, the sender is the client
};

// `bytes`: the first ones of the connection, kMaxSize or fewer. A header with a greater length is malformed.
ProxyHeader read_proxy_header(std::string_view bytes);

}  // namespace carpool::proxy::net
