// Descriptor budget: each client and each connection to an origin needs a descriptor. The process raises its limit as
// far as permitted. If that is too low for the configured totals, it logs this and lowers the pool total, but always
// starts.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "proxy/config/config.h"

namespace carpool::pool {
class Directory;
}

namespace carpool::proxy {

void raise_descriptor_limit();

// Returns [pool.total] max_connections, or the number that the descriptor limit leaves after the clients.
std::uint32_t effective_total(const config::Config& config);
std::uint32_t permitted_total(const config::Config& config);  // like effective_total(), but logs nothing
// Like effective_total(), for a given limit. Pure.
std::uint32_t total_under_limit(const config::Config& config, std::uint64_t limit);

// Closes an idle connection that was not used recently, of any pool, to free a descriptor. The cost is constant
// regardless of the number of pools; allocates nothing. Returns false if no connection is idle. Callable on any thread
// that runs a loop.
bool free_a_descriptor(pool::Directory& directory, Instant now);

}  // namespace carpool::proxy
