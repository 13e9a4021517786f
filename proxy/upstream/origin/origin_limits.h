// Translates the settings of an origin into its protocols and the limits of its pool.
#pragma once

#include "pool/origin.h"
#include "pool/policy/limits.h"
#include "proxy/config/config.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

ProtocolSet protocols_of(const config::Upstream& upstream, pool::Scheme scheme);
pool::Limits limits_of(const config::PoolSettings& settings, pool::Scheme scheme, const ProtocolSet& protocols,
                       const config::Config& config);
// Returns the shortest pool.leak_timeout of all origins; zero: none has one.
Duration shortest_leak_timeout(const config::Config& config);

}  // namespace carpool::proxy
