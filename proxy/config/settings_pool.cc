// The settings of the pools: sizes, reuse, warm-up, health checks, addresses, the total.
#include "pool/core/entry_index.h"
#include "proxy/config/setting_row.h"

namespace carpool::proxy::config {
namespace {

constexpr std::int64_t kMaxSize = 100'000;           // connections of one pool
constexpr std::int64_t kMaxStreams = 4095;           // the state word has 12 bits for users
constexpr std::int64_t kMaxConnectRate = 1'000'000;  // per second
constexpr std::int64_t kMaxUsage = (1 << 20) - 1;    // the state word has 20 bits for uses

Setting size() {
  return row<&PoolSettings::size>("size",
                                  "maximum number of connections over all workers; exact; \"auto\" = follows the load, "
                                  "from min_size to max_size")
      .between(1, kMaxSize)
      .keeps_auto();
}

Setting tcp_size() {
  return row<&PoolSettings::tcp_size>("tcp_size",
                                      "size of a tcp origin, each of whose connections is a tunnel; 0 = size; \"auto\" "
                                      "= a quarter of pool.total, "
                                      "up to 1024, or size if that is more; if only size is set, 0 applies")
      .between(0, kMaxSize)
      .keeps_auto();
}

std::vector<Setting> pool_sizes() {
  return {
      size(),
      row<&PoolSettings::min_size>("min_size", "minimum and initial size with \"auto\"").between(1, kMaxSize),
      row<&PoolSettings::max_size>("max_size", "maximum size with \"auto\"").between(1, kMaxSize),
      row<&PoolSettings::min_idle>("min_idle", "idle connections to keep open").between(0, kMaxSize),
      row<&PoolSettings::max_streams>("max_streams",
                                      "maximum concurrent requests on one h2 connection, within the peer's own limit")
          .between(1, kMaxStreams),
      row<&PoolSettings::max_usage>("max_usage", "requests per connection; 0 = no limit").between(0, kMaxUsage),
      row<&PoolSettings::expire_time>("expire_time", "maximum age of a connection, jitter 10 %; 0s = no limit"),
      row<&PoolSettings::idle_timeout>("idle_timeout", "idle time after which a connection is closed; 0s = no limit"),
      row<&PoolSettings::learn_idle_timeout>(
          "learn_idle_timeout", "close connections before the origin does, by its Keep-Alive field and observed closes")
          .rare(),
      row<&PoolSettings::max_waiting>("max_waiting",
                                      "maximum number of requests waiting for a connection; 0 = fail at once")
          .between(0, kMaxConnections),
      row<&PoolSettings::max_tunnels>(
          "max_tunnels",
          "maximum number of CONNECT and upgraded connections; 0 = half of size on http(s) origins, tcp_size on tcp")
          .between(0, kMaxSize),
      tcp_size(),
  };
}

std::vector<Setting> pool_waits() {
  return {
      row<&PoolSettings::wait_timeout>(
          "wait_timeout",
          "maximum wait of a request for a connection; connect_timeout if only a dial can serve it; more than 0s")
          .at_least(1),
      row<&PoolSettings::connect_timeout>("connect_timeout", "limit for DNS, TCP and TLS together").at_least(1),
      row<&PoolSettings::dns_timeout>("dns_timeout", "limit for DNS alone, within connect_timeout; 0s = none").rare(),
      row<&PoolSettings::tls_timeout>("tls_timeout",
                                      "limit for the TLS handshake alone, within connect_timeout; 0s = none")
          .rare(),
      row<&PoolSettings::connect_rate>("connect_rate",
                                       "connections dialed per second over all workers; excess ones are dialed "
                                       "later, within wait_timeout; 0 = no limit")
          .rare()
          .between(0, kMaxConnectRate),
      row<&PoolSettings::connect_burst>("connect_burst", "burst size for connect_rate; 0 = as many as connect_rate")
          .rare()
          .between(0, kMaxConnectRate),
  };
}

std::vector<Setting> pool_ways() {
  return {
      row<&PoolSettings::strategy>("strategy", "where the search for an idle connection starts").rare(),
      row<&PoolSettings::maximize>("maximize", "open connections up to size before reusing one").rare(),
      row<&PoolSettings::quarantine>("quarantine", "delay between a release and the next borrow of a connection")
          .rare(),
      row<&PoolSettings::cool_down>(
          "cool_down",
          "after a 429 or 503 with Retry-After send no request until then, and then one before the others"),
      row<&PoolSettings::max_cool_down>("max_cool_down", "maximum duration of a pause by cool_down").rare().at_least(1),
      row<&PoolSettings::evict>("evict", "which idle connection is closed when pool.total.max_connections is reached")
          .rare(),
      row<&PoolSettings::reuse>(
          "reuse", "whether a request may use a connection that served others before; safe = by method and idle time"),
      row<&PoolSettings::leak_timeout>("leak_timeout", "report a borrow that lasts longer; 0s = only lost leases"),
      row<&PoolSettings::leak_action>("leak_action", "what happens to a reported connection").rare(),
      row<&PoolSettings::classes>(
          "classes", "2 to 4 priority classes, highest first; connections are reserved for the higher ones")
          .format(kClassName, R"(["high", "normal"])"),
  };
}

}  // namespace

Section pool_section() {
  Section section{"pool",
                  "defaults for every origin",
                  false,
                  pool_sizes(),
                  [](Config& config) -> void* { return &config.pool; },
                  [](OriginSettings& origin) -> void* { return &origin.pool; },
                  &defaults<PoolSettings>()};
  for (const auto more : {pool_waits, pool_ways}) {
    for (Setting& row : more()) section.settings.push_back(row);
  }
  return section;
}

Section warm_up_section() {
  return {"pool.warm_up",
          "connections opened before the first request",
          false,
          {
              row<&WarmUp::enabled>("enabled", "open connections at start"),
              row<&WarmUp::size>("size", "number of connections; at most the pool's size").between(0, kMaxSize),
          },
          [](Config& config) -> void* { return &config.pool.warm_up; },
          [](OriginSettings& origin) -> void* { return &origin.pool.warm_up; },
          &defaults<WarmUp>()};
}

Section health_check_section() {
  return {
      "pool.health_check",
      "checks of idle connections",
      false,
      {
          row<&HealthCheck::enabled>("enabled", "check idle connections"),
          row<&HealthCheck::interval>("interval", "interval between checks of a connection, jitter 10 %").at_least(1),
          row<&HealthCheck::probe>("probe",
                                   "request sent on idle h1 connections; default none (the socket state alone)")
              .format(kProbe, R"("OPTIONS *")"),
      },
      [](Config& config) -> void* { return &config.pool.health_check; },
      [](OriginSettings& origin) -> void* { return &origin.pool.health_check; },
      &defaults<HealthCheck>()};
}

Section addresses_section() {
  return {
      "pool.addresses",
      "distribution over several addresses, ejection of failing ones, retirement of connections to removed ones",
      false,
      {
          row<&Addresses::eject_after>("eject_after",
                                       "consecutive failures after which an address is ejected, at most half of the "
                                       "addresses; 0 = never")
              .between(0, 1000),
          row<&Addresses::eject_time>(
              "eject_time", "duration of an ejection; each one soon after another is longer by this time, up to 5m")
              .rare()
              .at_least(1),
          row<&Addresses::gone_after>("gone_after",
                                      "close connections to an address that DNS has not returned for this long")
              .rare()
              .at_least(1),
          row<&Addresses::retire_every>(
              "retire_every", "interval between closing two connections for gone_after or to rebalance a full pool")
              .rare()
              .at_least(1),
          row<&Addresses::balance>("balance",
                                   "least_loaded: each request goes to the less loaded of two addresses; none: "
                                   "`strategy` selects the connection"),
          row<&Addresses::slow_start>("slow_start", "time in which the share of a new address grows; 0s = at once")
              .rare(),
      },
      [](Config& config) -> void* { return &config.pool.addresses; },
      [](OriginSettings& origin) -> void* { return &origin.pool.addresses; },
      &defaults<Addresses>()};
}

Section total_section() {
  return {"pool.total",
          "limits over all origins",
          false,
          {
              row<&Total::max_connections>(
                  "max_connections", "maximum number of connections; least recently used idle ones are closed first")
                  .between(1, kMaxConnections)
                  .restart(),
              row<&Total::max_origins>("max_origins", "maximum number of pools, one per origin")
                  .between(1, pool::EntryIndex::kBlocks)
                  .restart(),
              row<&Total::origin_idle_timeout>(
                  "origin_idle_timeout", "time without use after which a pool that belongs to no [[origin]] is removed")
                  .at_least(1),
          },
          [](Config& config) -> void* { return &config.pool_total; },
          nullptr,
          &defaults<Total>()};
}

}  // namespace carpool::proxy::config
