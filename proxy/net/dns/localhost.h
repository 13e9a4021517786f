// The names of this machine (RFC 6761 §6.3), which no name server is asked for.
#pragma once

#include <ares.h>

#include <optional>
#include <string>
#include <string_view>

#include "proxy/net/dns/lookup_result.h"

namespace carpool::proxy::dns {

// Returns true for `localhost` and for the names below it. `name`: in lower case.
bool is_localhost(std::string_view name);

// Returns the loopback addresses for a name of this machine that the hosts file does not contain, and nullopt for any
// other name. Containers and change roots may have no hosts file.
std::optional<LookupResult> loopback_of(ares_channel channel, const std::string& name);

}  // namespace carpool::proxy::dns
