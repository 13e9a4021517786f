#include "proxy/upstream/fd_budget.h"

#include <sys/resource.h>

#include <algorithm>

#include "pool/directory/directory.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr std::uint64_t kReserved = 64;  // for listeners, loops, admin clients, name servers and logs
constexpr std::uint64_t kMinTotal = 16;  // minimum of connections to origins
}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint32_t total_under_limit(const config::Config& config, std::uint64_t limit) {
  std::uint64_t clients = 0;
  for (const config::Listen& listen : config.listen) clients += listen.max_connections;
  const std::uint64_t wanted = config.pool_total.max_connections;
  if (wanted + clients + kReserved <= limit) return config.pool_total.max_connections;
  // The client limit may exceed the number that ever arrives, so clients get at most half.
  const std::uint64_t beside = std::min(clients, limit / 2) + kReserved;
  const std::uint64_t left = limit > beside + kMinTotal ? limit - beside : kMinTotal;
  return static_cast<std::uint32_t>(std::min(wanted, left));
}

namespace {
std::uint64_t descriptor_limit() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? limit.rlim_cur : UINT64_MAX;
}
}  // namespace

std::uint32_t permitted_total(const config::Config& config) {
  return total_under_limit(config, descriptor_limit());
}

std::uint32_t effective_total(const config::Config& config) {
  const std::uint32_t total = permitted_total(config);
  if (total < config.pool_total.max_connections) {
    log::warn("server", "too few file descriptors for pool.total.max_connections and the clients; the total is reduced",
              {{"limit", descriptor_limit()}, {"configured", config.pool_total.max_connections}, {"effective", total}});
  }
  return total;
}

bool free_a_descriptor(pool::Directory& directory, Instant now) {
  return directory.close_one(now);
}

}  // namespace carpool::proxy
