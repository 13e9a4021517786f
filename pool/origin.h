// Origin: all that reuse of a connection depends on. Equal origins share one pool and one cap; nothing else does.
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
  std::uint32_t tls = 0;   // which TLS identity (0: the default one); differing identities never merge

  // `scheme://host[:port]`, the port only when it is not the scheme's default: label, log and {origin} in paths.
  std::string label() const;
  // `host[:port]` as Host says it.
  std::string authority() const;
  bool is_ip_literal() const;

  friend bool operator==(const Origin&, const Origin&) = default;
};

std::string_view name(Scheme scheme);
std::uint16_t default_port(Scheme scheme);  // 0: tcp has none

// The one place that decides equality: case, default port, trailing dot, IP spelling, percent-encoding, IDNA (UTS 46).
// `authority` is host[:port] without userinfo. Faults: malformed_request with what is wrong.
Result<Origin> canonical_origin(Scheme scheme, std::string_view authority);
// "https://host[:port]" with nothing behind it but an optional "/".
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
