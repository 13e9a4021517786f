// Descriptors: every connection costs one on each side. The process takes what the system grants; if that is too little
// for the configured totals it says so and lowers the one it can, never refuses to start.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "proxy/config/config.h"

namespace carpool::pool {
class Directory;
}

namespace carpool::proxy {

void raise_descriptor_limit();

// [pool.total] max_connections, or what the descriptor limit leaves of it beside the clients.
std::uint32_t effective_total(const config::Config& config);
// The same for a given limit; pure.
std::uint32_t total_under_limit(const config::Config& config, std::uint64_t limit);

// The system has no descriptor left: closes an idle connection of a pool that was not used of late, so that what is
// wanted now gets its place. Costs the same however many pools there are, and allocates nothing. False: nothing is idle
// anywhere. Any thread that turns a loop.
bool free_a_descriptor(pool::Directory& directory, Instant now);

}  // namespace carpool::proxy
