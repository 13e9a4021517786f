// Descriptor budget: each connection needs one on each side. The process raises its limit as far as permitted; if that
// is too low for the configured totals, it logs this and lowers the pool total, but always starts.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "proxy/config/config.h"

namespace carpool::pool {
class Directory;
}

namespace carpool::proxy {

void raise_descriptor_limit();

// Returns [pool.total] max_connections, or what the descriptor limit leaves besides the clients.
std::uint32_t effective_total(const config::Config& config);
std::uint32_t permitted_total(const config::Config& config);  // the same, and logs nothing
// The same for a given limit; pure.
std::uint32_t total_under_limit(const config::Config& config, std::uint64_t limit);

// Out of descriptors: closes an idle connection of a pool that was not used recently, to free one. Constant cost
// regardless of the number of pools; allocates nothing. Returns false if no connection is idle. Callable on any thread
// that runs a loop.
bool free_a_descriptor(pool::Directory& directory, Instant now);

}  // namespace carpool::proxy
