// What an address means to a rule: the other addresses that its bytes spell, whether it is this machine's, and whether
// it lies where only the machine's own services answer.
#pragma once

#include <optional>
#include <vector>

#include "proxy/config/egress_rule.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

// The address itself (unmapped, the wildcard as loopback: that is where the kernel takes it) and, if IPv6 bytes carry
// an IPv4 address (v4-compatible, NAT64, 6to4), that one as well; with the port.
std::vector<Address> readings_of(const Address& address);

// Does connecting to `target` reach a socket that listens on `listener`?
bool reaches(const Address& target, const Address& listener);

// The link-local or metadata range that `address` lies in.
std::optional<config::EgressRule> protected_range(const Address& address);

// As EgressRule compares addresses: IPv6 bytes, IPv4 as v4-mapped.
std::array<std::uint8_t, 16> rule_bytes(const Address& address);

}  // namespace carpool::proxy::net
