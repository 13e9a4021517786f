// The names of this machine (RFC 6761 §6.3), which no name server is asked for.
#pragma once

#include <ares.h>

#include <optional>
#include <string>

#include "proxy/net/dns/lookup_result.h"

namespace carpool::proxy::dns {

// Returns the loopback addresses for `localhost` or a name below it that the hosts file does not contain, and nullopt
// for any other name. `name`: in lower case. Containers and change roots may have no hosts file.
std::optional<LookupResult> loopback_of(ares_channel channel, const std::string& name);

}  // namespace carpool::proxy::dns
