// How an address relates to egress rules: the other addresses that its bytes denote, whether it belongs to this
// machine, and whether it is in a range that only local services of the machine or the cloud use.
#pragma once

#include <optional>
#include <vector>

#include "proxy/config/egress_rule.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

// Returns the address (unmapped; the wildcard as loopback, to which the kernel routes it) and, if the IPv6 bytes carry
// an IPv4 address (v4-compatible, NAT64, 6to4), that one too; with the port. A Unix socket is itself.
std::vector<Address> readings_of(const Address& address);

// Returns true if connecting to `target` reaches a socket that listens on `listener`. Compares the files of two Unix
// sockets.
bool reaches(const Address& target, const Address& listener);

// Returns the link-local or metadata range that contains `address`.
std::optional<config::EgressRule> protected_range(const Address& address);

// Returns the form that EgressRule compares: IPv6 bytes, IPv4 as v4-mapped. Not for Unix sockets.
std::array<std::uint8_t, 16> rule_bytes(const Address& address);

}  // namespace carpool::proxy::net
