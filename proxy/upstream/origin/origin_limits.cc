#include "proxy/upstream/origin/origin_limits.h"

#include <algorithm>
#include <string_view>

#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

// Over TLS the origin selects the protocol. Plain text means HTTP/1.1 unless only HTTP/2 is allowed (prior knowledge).
ProtocolSet protocols_of(const config::Upstream& upstream, pool::Scheme scheme) {
  const auto lists = [&](std::string_view word) {
    return std::find(upstream.protocols.begin(), upstream.protocols.end(), word) != upstream.protocols.end();
  };
  ProtocolSet protocols{lists("h1"), lists("h2")};
  if (scheme == pool::Scheme::tcp) return {true, false};
  if (scheme == pool::Scheme::http && protocols.h1) protocols.h2 = false;
  protocols.bare_lf = std::find(upstream.lenient.begin(), upstream.lenient.end(), "bare_lf") != upstream.lenient.end();
  return protocols;
}

namespace {
// Returns the number of streams that is assumed until the first connection reports its limit.
std::uint32_t expected_streams(const ProtocolSet& protocols, std::uint32_t max_streams) {
  if (!protocols.h2) return 1;
  return protocols.h1 ? 0 : max_streams;
}

// Returns the connection limit of a tcp origin, all of whose connections are tunnels. A request that finds all in use
// waits in the queue. "auto" is a quarter of all connections that the descriptors permit, because a client may open a
// hundred to one host at a time.
std::uint32_t tcp_size(const config::PoolSettings& settings, const config::Config& config) {
  constexpr std::uint32_t kMax = 1024;
  if (settings.max_tunnels != 0) return settings.max_tunnels;
  if (settings.tcp_size == config::kAutomatic)
    return std::max(settings.largest(), std::min(permitted_total(config) / 4, kMax));
  return settings.tcp_size == 0 ? settings.largest() : settings.tcp_size;
}

// Returns true if the size of the origin's pool follows the load.
bool follows_load(const config::PoolSettings& settings, bool tcp) {
  return settings.auto_size() && !(tcp && (settings.max_tunnels != 0 || settings.tcp_size != 0));
}

// Returns the limit of upgraded connections beside requests.
std::uint32_t max_tunnels(const config::PoolSettings& settings) {
  return settings.max_tunnels != 0 ? settings.max_tunnels : (settings.largest() + 1) / 2;
}
}  // namespace

pool::Limits limits_of(const config::PoolSettings& settings, pool::Scheme scheme, const ProtocolSet& protocols,
                       const config::Config& config) {
  const bool tcp = scheme == pool::Scheme::tcp;
  pool::Limits limits;
  limits.size = tcp ? tcp_size(settings, config) : settings.size;
  if (follows_load(settings, tcp)) {
    limits.size = limits.min_size = settings.min_size;
    limits.max_size = settings.max_size;
    limits.half_tunnels = settings.max_tunnels == 0 && !tcp;
  }
  limits.max_waiting = settings.max_waiting;
  limits.max_usage = settings.max_usage;
  limits.single_use = settings.reuse == config::Reuse::never;
  limits.max_tunnels = tcp ? 0 : max_tunnels(settings);
  limits.expire_time = settings.expire_time;
  limits.idle_timeout = settings.idle_timeout;
  limits.strategy = settings.strategy;
  limits.maximize = settings.maximize;
  limits.quarantine = settings.quarantine;
  limits.max_cool_down = settings.cool_down ? settings.max_cool_down : Duration::zero();
  limits.evict = settings.evict;
  limits.min_idle = settings.min_idle;
  limits.learn_idle = settings.learn_idle_timeout;
  limits.classes = static_cast<std::uint8_t>(settings.classes.size());  // the number is small: checked at load
  limits.expected_streams = expected_streams(protocols, settings.max_streams);
  return limits;
}

Duration shortest_leak_timeout(const config::Config& config) {
  Duration shortest = config.pool.leak_timeout;
  for (const config::OriginSettings& origin : config.origins) {
    const Duration own = origin.pool.leak_timeout;
    if (own > Duration::zero() && (shortest == Duration::zero() || own < shortest)) shortest = own;
  }
  return shortest;
}

}  // namespace carpool::proxy
