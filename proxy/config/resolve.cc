#include "proxy/config/resolve.h"

#include <algorithm>

namespace carpool::proxy::config {
namespace {

void fit_warm_up(PoolSettings& pool, const Places& places, const std::string& prefix) {
  if (places.given(prefix + "pool.warm_up.size")) return;
  pool.warm_up.size = std::min(pool.warm_up.size, pool.size);
}

// 0 is the identity of all origins that are listed nowhere.
void number_identities(Config& config) {
  std::vector<const Upstream*> seen{&config.upstream};
  for (OriginSettings& origin : config.origins) {
    if (origin.origin.scheme != pool::Scheme::https) continue;
    const auto same = [&](const Upstream* other) { return *other == origin.upstream; };
    const auto found = std::find_if(seen.begin(), seen.end(), same);
    origin.origin.tls = static_cast<std::uint32_t>(found - seen.begin());
    if (found == seen.end()) seen.push_back(&origin.upstream);
  }
}

}  // namespace

void resolve(Config& config, const Places& places) {
  fit_warm_up(config.pool, places, "");
  for (std::size_t i = 0; i < config.origins.size(); ++i) {
    fit_warm_up(config.origins[i].pool, places, "origin[" + std::to_string(i) + "].");
  }
  number_identities(config);
}

}  // namespace carpool::proxy::config
