// Origin: everything that the reuse of a connection depends on. Equal origins share one pool and one cap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::pool {

enum class Scheme : std::uint8_t { http, https, tcp };

struct Origin {
  Scheme scheme = Scheme::http;
  std::string host;        // canonical: lower case, A-labels, no trailing dot; IPv6 compressed, without brackets
  std::uint16_t port = 0;  // always set
  std::uint32_t tls = 0;   // the TLS identity (0: the default); different identities never share a pool

  // Returns `scheme://host[:port]`, without the scheme's default port: label, log and {origin} in paths.
  std::string label() const;
  // Returns `host[:port]` as in a Host field.
  std::string authority() const;
  bool is_ip_literal() const;
  // Returns true if scheme, host and port are the same; the TLS identity may differ.
  bool same_place(const Origin& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }

  friend bool operator==(const Origin&, const Origin&) = default;
};

std::string_view name(Scheme scheme);
std::uint16_t default_port(Scheme scheme);  // 0: tcp has none

// Parses and normalizes: case, default port, trailing dot, IP spelling, percent-encoding, IDNA (UTS 46). The only place
// that decides equality. `authority` is host[:port] without userinfo. Fault: malformed_request with the reason.
Result<Origin> canonical_origin(Scheme scheme, std::string_view authority);
// Parses "https://host[:port]", optionally followed by "/".
Result<Origin> parse_origin(std::string_view uri);

}  // namespace carpool::pool

template <>
struct std::hash<carpool::pool::Origin> {
  std::size_t operator()(const carpool::pool::Origin& origin) const noexcept {
    const std::size_t numbers = (static_cast<std::size_t>(origin.tls) << 24) ^
                                (static_cast<std::size_t>(origin.port) << 4) ^ static_cast<std::size_t>(origin.scheme);
    return std::hash<std::string>{}(origin.host) ^ (numbers * 0x9E3779B97F4A7C15ULL);
  }
};
