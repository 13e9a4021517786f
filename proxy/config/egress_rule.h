// One pattern of egress.allow or egress.deny, parsed: a name (`*.example.com`, `example.com:443`, `*`) that is compared
// before resolution, or a network (`10.0.0.0/8`, `[fd00::]/8:443`, `1.2.3.4`) that is compared after it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::config {

struct EgressRule {
  enum class Kind : std::uint8_t { any, host, subdomains, network };
  Kind kind = Kind::any;
  std::string name;                        // host, subdomains: canonical ("example.com" of "*.example.com")
  std::array<std::uint8_t, 16> network{};  // IPv6, IPv4 as v4-mapped
  unsigned prefix = 0;                     // significant bits of `network`, 96 and more for IPv4
  std::uint16_t port = 0;                  // 0: any

  static Result<EgressRule> parse(std::string_view pattern);  // the Fault's detail contains the expected format
  bool matches_name(std::string_view canonical_host, std::uint16_t to_port) const;
  // `address`: IPv6, or IPv4 as v4-mapped.
  bool matches_address(const std::array<std::uint8_t, 16>& address, std::uint16_t to_port) const;
};

}  // namespace carpool::proxy::config
