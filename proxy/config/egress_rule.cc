#include "proxy/config/egress_rule.h"

#include <arpa/inet.h>

#include <cstring>
#include <optional>

#include "base/ascii.h"
#include "pool/origin.h"

namespace carpool::proxy::config {
namespace {

using Bytes = std::array<std::uint8_t, 16>;
constexpr unsigned kMapped = 96;  // bits before the IPv4 address in a v4-mapped one

Fault invalid(std::string_view what) {
  return {FaultKind::malformed_request, Side::self, std::string(what)};
}

std::optional<unsigned> number(std::string_view text, unsigned most) {
  const auto value = number_in<unsigned>(text);
  return value && *value <= most ? value : std::nullopt;
}

// Splits ":PORT" off the end, but not inside or right after an IPv6 address without brackets.
Status split_port(std::string_view& pattern, std::uint16_t& port) {
  const std::size_t colon = pattern.rfind(':');
  if (colon == std::string_view::npos) return Done{};
  const bool bracketed = pattern.front() == '[';
  if (bracketed && colon < pattern.find(']')) return Done{};
  if (!bracketed && pattern.find(':') != colon) return Done{};
  const auto value = number(pattern.substr(colon + 1), 65535);
  if (!value || *value == 0) return invalid("the port is not a number from 1 to 65535");
  port = static_cast<std::uint16_t>(*value);
  pattern = pattern.substr(0, colon);
  return Done{};
}

// Returns 4 for IPv4, 6 for IPv6, 0 if the text is not an address in the usual notation. Other notations (octal, short
// forms) are rejected because a reader of the rule could misread them.
int read_address(std::string_view text, Bytes& out) {
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  const std::string host(bracketed ? text.substr(1, text.size() - 2) : text);
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    std::memcpy(out.data(), &v6, out.size());
    return 6;
  }
  out = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return !bracketed && inet_pton(AF_INET, host.c_str(), out.data() + kMapped / 8) == 1 ? 4 : 0;
}

bool mapped(const Bytes& address) {
  constexpr Bytes kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(address.data(), kPrefix.data(), kMapped / 8) == 0;
}

Result<EgressRule> parse_network(std::string_view pattern, EgressRule rule) {
  const std::size_t slash = pattern.find('/');
  const int family = read_address(pattern.substr(0, slash), rule.network);
  if (family == 0) return invalid("the part before `/` is not an IP address");
  const unsigned bits = family == 4 ? 32 : 128;
  std::optional<unsigned> prefix = bits;
  if (slash != std::string_view::npos) prefix = number(pattern.substr(slash + 1), bits);
  if (!prefix)
    return invalid(family == 4 ? "the prefix is not a number up to 32" : "the prefix is not a number up to 128");
  rule.kind = EgressRule::Kind::network;
  rule.prefix = family == 4 ? *prefix + kMapped : *prefix;
  return rule;
}

}  // namespace

Result<EgressRule> EgressRule::parse(std::string_view pattern) {
  EgressRule rule;
  if (pattern.empty()) return invalid("the pattern is empty");
  if (pattern.find("://") != std::string_view::npos) return invalid("is a URL: write its host alone");
  if (Status status = split_port(pattern, rule.port); !status) return status.take_fault();
  if (pattern == "*") return rule;
  Bytes unused;
  if (pattern.find('/') != std::string_view::npos || read_address(pattern, unused) != 0)
    return parse_network(pattern, rule);
  rule.kind = pattern.starts_with("*.") ? Kind::subdomains : Kind::host;
  if (rule.kind == Kind::subdomains) pattern.remove_prefix(2);
  if (pattern.find('*') != std::string_view::npos) return invalid("`*` is only allowed alone or as the prefix `*.`");
  if (pattern.find_first_of("[]:") != std::string_view::npos)
    return invalid("the address or the port is malformed; an IPv6 address with a port is written `[ADDRESS]:PORT`");
  auto host = pool::canonical_origin(pool::Scheme::http, pattern);
  if (!host) return host.take_fault();
  if (host->is_ip_literal()) return invalid("an IP address must be written in full, such as `127.0.0.1`");
  rule.name = host->host;
  return rule;
}

bool EgressRule::matches_name(std::string_view host, std::uint16_t to_port) const {
  if (port != 0 && port != to_port) return false;
  if (kind == Kind::any) return true;
  if (kind == Kind::host) return host == name;
  if (kind != Kind::subdomains || host.size() <= name.size() + 1 || !host.ends_with(name)) return false;
  return host[host.size() - name.size() - 1] == '.';
}

bool EgressRule::matches_address(const Bytes& address, std::uint16_t to_port) const {
  if (port != 0 && port != to_port) return false;
  if (kind != Kind::network) return kind == Kind::any;
  // ::/0 does not match IPv4 addresses: they are v4-mapped only in this representation, not on the wire.
  if (prefix < kMapped && mapped(address)) return false;
  const unsigned whole = prefix / 8;
  if (std::memcmp(address.data(), network.data(), whole) != 0) return false;
  if (prefix % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xFF << (8 - prefix % 8));
  return (address[whole] & mask) == (network[whole] & mask);
}

}  // namespace carpool::proxy::config
