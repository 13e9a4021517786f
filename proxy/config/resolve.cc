#include "proxy/config/resolve.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>

#include "proxy/config/text_format.h"

namespace carpool::proxy::config {
namespace {

void fit_warm_up(PoolSettings& pool, const Places& places, const std::string& prefix) {
  if (places.given(prefix + "pool.warm_up.size")) return;
  pool.warm_up.size = std::min(pool.warm_up.size, pool.largest());
}

// A size that is written is that of tcp origins, too, unless the same table has their own.
void set_tcp_size(PoolSettings& pool, const Places& places, const std::string& prefix) {
  if (places.given(prefix + "pool.size") && !places.given(prefix + "pool.tcp_size")) pool.tcp_size = 0;
}

void resolve_pool(OriginSettings& origin, const PoolSettings& all, const Places& places, const std::string& prefix) {
  fit_warm_up(origin.pool, places, prefix);
  const bool own = origin.origin.scheme == pool::Scheme::tcp && places.given(prefix + "pool.tcp_size");
  if (!own) origin.pool.tcp_size = all.tcp_size;
  if (origin.origin.scheme == pool::Scheme::tcp) set_tcp_size(origin.pool, places, prefix);
}

void number_same_addresses(std::vector<Listen>& listeners) {
  std::unordered_map<std::string, std::uint32_t> seen;
  for (Listen& listen : listeners) listen.twin = any_port(listen.address) ? seen[listen.address]++ : 0;
}

// Hashes what distinguishes most origins' settings; equality compares all of them.
struct LikelyHash {
  std::size_t operator()(const Upstream* upstream) const {
    std::size_t hash = 0;
    for (const std::string* text : {&upstream->tls.server_name, &upstream->tls.ca_file, &upstream->tls.cert_file}) {
      hash = hash * 31 + std::hash<std::string>{}(*text);
    }
    return hash;
  }
};
struct SameUpstream {
  bool operator()(const Upstream* a, const Upstream* b) const { return *a == *b; }
};

// Number 0 is the identity of all origins without an [[origin]] section.
void number_identities(Config& config) {
  std::unordered_map<const Upstream*, std::uint32_t, LikelyHash, SameUpstream> seen{{&config.upstream, 0}};
  for (OriginSettings& origin : config.origins) {
    if (origin.origin.scheme != pool::Scheme::https) continue;
    const auto next = static_cast<std::uint32_t>(seen.size());
    origin.origin.tls = seen.emplace(&origin.upstream, next).first->second;
  }
}

}  // namespace

void resolve(Config& config, const Places& places) {
  fit_warm_up(config.pool, places, "");
  set_tcp_size(config.pool, places, "");
  for (std::size_t i = 0; i < config.origins.size(); ++i) {
    resolve_pool(config.origins[i], config.pool, places, "origin[" + std::to_string(i) + "].");
  }
  number_same_addresses(config.listen);
  number_identities(config);
}

}  // namespace carpool::proxy::config
