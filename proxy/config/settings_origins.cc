// The settings of what lies upstream: pools, requests, DNS, protocols, TLS, egress, origins.
#include "proxy/config/row.h"

namespace carpool::proxy::config {
namespace {

constexpr std::int64_t kMaxSize = 100'000;         // of one pool
constexpr std::int64_t kMaxStreams = 4095;         // the state word counts users in 12 bits
constexpr std::int64_t kMaxRate = 1'000'000;       // a second
constexpr std::int64_t kMaxUsage = (1 << 20) - 1;  // and uses in 20

std::vector<Setting> pool_sizes() {
  return {
      row<&PoolSettings::size>("size", "most connections, all workers together; exact").between(1, kMaxSize),
      row<&PoolSettings::min_idle>("min_idle", "idle connections to keep ready").between(0, kMaxSize),
      row<&PoolSettings::max_streams>("max_streams",
                                      "most requests at once on one h2 connection, below the peer's own limit")
          .between(1, kMaxStreams),
      row<&PoolSettings::max_usage>("max_usage", "requests per connection; 0 = no limit").between(0, kMaxUsage),
      row<&PoolSettings::expire_time>("expire_time", "life of a connection, jitter 10 %; 0s = no limit"),
      row<&PoolSettings::idle_timeout>("idle_timeout", "rest of a connection before it is closed; 0s = no limit"),
      row<&PoolSettings::learn_idle_timeout>(
          "learn_idle_timeout", "retire before the origin's own keep-alive limit (hint header and observed closes)"),
      row<&PoolSettings::max_waiting>("max_waiting", "requests waiting for a connection; 0 = fail at once")
          .between(0, kMaxConnections),
      row<&PoolSettings::wait_timeout>("wait_timeout", "of a waiting request; more than 0s").at_least(1),
      row<&PoolSettings::connect_timeout>("connect_timeout", "DNS + TCP + TLS").at_least(1),
      row<&PoolSettings::connect_rate>("connect_rate",
                                       "connections dialed a second, all workers together; the next ones are dialed "
                                       "later, within wait_timeout; 0 = no limit")
          .between(0, kMaxRate),
      row<&PoolSettings::connect_burst>("connect_burst", "of them at once; 0 = as many as connect_rate")
          .between(0, kMaxRate),
      row<&PoolSettings::max_tunnels>(
          "max_tunnels", "CONNECT and upgraded connections; 0 = half of size on http(s) origins, size on tcp")
          .between(0, kMaxSize),
  };
}

std::vector<Setting> pool_ways() {
  return {
      row<&PoolSettings::strategy>("strategy", "where the search for an idle connection starts"),
      row<&PoolSettings::maximize>("maximize", "open up to size before reusing"),
      row<&PoolSettings::quarantine>("quarantine", "rest after release before the next borrow"),
      row<&PoolSettings::evict>("evict", "who goes under the total budget"),
      row<&PoolSettings::reuse>("reuse",
                                "may a request use a connection that served before; safe = by method and rest"),
      row<&PoolSettings::leak_timeout>("leak_timeout",
                                       "a borrow older than this is reported; 0s = only structural leaks"),
      row<&PoolSettings::leak_action>("leak_action", "what happens to it"),
      row<&PoolSettings::classes>("classes", "2 to 4 priority classes, the highest first, each with a share of the cap")
          .looks_like(kClassName, R"(["high", "normal"])"),
  };
}

}  // namespace

Section pool_section() {
  Section section{"pool",
                  "defaults of every origin",
                  false,
                  pool_sizes(),
                  [](Config& config) -> void* { return &config.pool; },
                  [](OriginSettings& origin) -> void* { return &origin.pool; },
                  &kDefaults<PoolSettings>};
  for (Setting& row : pool_ways()) section.settings.push_back(row);
  return section;
}

Section warm_up_section() {
  return {"pool.warm_up",
          "connections opened before the first request",
          false,
          {
              row<&WarmUp::enabled>("enabled", "open them at start"),
              row<&WarmUp::size>("size", "how many; at most the pool's size").between(0, kMaxSize),
          },
          [](Config& config) -> void* { return &config.pool.warm_up; },
          [](OriginSettings& origin) -> void* { return &origin.pool.warm_up; },
          &kDefaults<WarmUp>};
}

Section health_check_section() {
  return {"pool.health_check",
          "idle connections are watched; a probe asks more",
          false,
          {
              row<&HealthCheck::enabled>("enabled", "check idle connections"),
              row<&HealthCheck::interval>("interval", "between two checks of a connection, jitter 10 %").at_least(1),
              row<&HealthCheck::probe>("probe", "sent on idle h1 connections; default none (read interest alone)")
                  .looks_like(kProbe, R"("OPTIONS *")"),
          },
          [](Config& config) -> void* { return &config.pool.health_check; },
          [](OriginSettings& origin) -> void* { return &origin.pool.health_check; },
          &kDefaults<HealthCheck>};
}

Section addresses_section() {
  return {"pool.addresses",
          "an origin's addresses: which is left out, and when connections leave one",
          false,
          {
              row<&Addresses::eject_after>("eject_after",
                                           "failures in a row after which an address is left out, never more than half "
                                           "of them; 0 = never")
                  .between(0, 1000),
              row<&Addresses::eject_time>("eject_time", "for how long; soon again: longer each time, at most 5m")
                  .at_least(1),
              row<&Addresses::gone_after>("gone_after",
                                          "connections to an address close when the name has not had it for so long")
                  .at_least(1),
              row<&Addresses::retire_every>("retire_every", "one of these connections closes").at_least(1),
          },
          [](Config& config) -> void* { return &config.pool.addresses; },
          [](OriginSettings& origin) -> void* { return &origin.pool.addresses; },
          &kDefaults<Addresses>};
}

Section total_section() {
  return {"pool.total",
          "over all origins",
          false,
          {
              row<&Total::max_connections>("max_connections", "over all origins; least recently used idle ones go")
                  .between(1, kMaxConnections)
                  .restart(),
              row<&Total::max_origins>("max_origins", "pools").between(1, 100'000).restart(),
              row<&Total::origin_idle_timeout>("origin_idle_timeout",
                                               "a pool that nobody used for so long, and no [[origin]] names, ends")
                  .at_least(1),
          },
          [](Config& config) -> void* { return &config.pool_total; },
          nullptr,
          &kDefaults<Total>};
}

Section request_section() {
  return {"request",
          "one request and its response",
          false,
          {
              row<&Request::timeout>("timeout",
                                     "from the request's head to the response's last byte, waiting and dialing "
                                     "included; 0s = none"),
              row<&Request::response_header_timeout>("response_header_timeout", "request sent to response head")
                  .at_least(1),
              row<&Request::idle_timeout>("idle_timeout", "no byte in either direction").at_least(1),
              row<&Request::max_retries>("max_retries",
                                         "of idempotent requests on a reused connection that ended without a byte")
                  .between(0, 8),
              row<&Request::retry_budget>("retry_budget",
                                          "of those at most so many percent of an origin's requests, once a pool's "
                                          "worth of them is spent; 100 = no bound")
                  .between(0, 100),
              row<&Request::rate>("rate",
                                  "requests a second to one origin, all workers together; more are answered 429; 0 = "
                                  "no limit")
                  .between(0, kMaxRate),
              row<&Request::rate_burst>("rate_burst", "of them at once; 0 = as many as rate").between(0, kMaxRate),
              row<&Request::retry_idempotent>("retry_idempotent", "PUT and DELETE too"),
              row<&Request::replay_buffer>("replay_buffer", "of a request body kept for a proven replay")
                  .between(0, 64 << 20),
          },
          [](Config& config) -> void* { return &config.request; },
          [](OriginSettings& origin) -> void* { return &origin.request; },
          &kDefaults<Request>};
}

Section dns_section() {
  return {"dns",
          "names to addresses",
          false,
          {
              row<&Dns::min_ttl>("min_ttl", "an answer is kept at least so long"),
              row<&Dns::max_ttl>("max_ttl", "and at most so long"),
              row<&Dns::stale_for>("stale_for", "and served so much longer while the name server fails"),
          },
          [](Config& config) -> void* { return &config.dns; },
          nullptr,
          &kDefaults<Dns>};
}

Section upstream_section() {
  return {"upstream",
          "how to speak to origins",
          false,
          {
              row<&Upstream::protocols>("protocols", "ALPN over TLS; plain text is h1 unless only h2 is listed")
                  .looks_like(kProtocol),
          },
          [](Config& config) -> void* { return &config.upstream; },
          [](OriginSettings& origin) -> void* { return &origin.upstream; },
          &kDefaults<Upstream>};
}

Section tls_section() {
  return {
      "upstream.tls",
      "an origin with other TLS settings has a pool of its own",
      false,
      {
          row<&Tls::ca_file>("ca_file", "trusted instead of the system's certificates")
              .looks_like(kReadableFile, R"("/etc/carpool/ca.pem")"),
          row<&Tls::cert_file>("cert_file", "client certificate, with its chain; needs key_file")
              .looks_like(kReadableFile, R"("/etc/carpool/client.pem")"),
          row<&Tls::key_file>("key_file", "its private key").looks_like(kReadableFile, R"("/etc/carpool/client.key")"),
          row<&Tls::min_version>("min_version", "oldest TLS version to accept"),
          row<&Tls::verify>("verify", "false: any certificate is believed"),
          row<&Tls::server_name>("server_name", "for SNI and verification; default: the origin's host")
              .looks_like(kHostName, R"("api.internal")"),
      },
      [](Config& config) -> void* { return &config.upstream.tls; },
      [](OriginSettings& origin) -> void* { return &origin.upstream.tls; },
      &kDefaults<Tls>};
}

Section egress_section() {
  return {
      "egress",
      "where requests may go: names before, addresses after resolution",
      false,
      {
          row<&Egress::default_>("default", "what is in neither list"),
          row<&Egress::allow>("allow", "names, addresses and networks, each with an optional port")
              .looks_like(kEgressPattern, R"(["*.example.com:443"])"),
          row<&Egress::deny>("deny", "the same; goes before allow").looks_like(kEgressPattern, R"(["169.254.0.0/16"])"),
          row<&Egress::report_only>("report_only", "say in log and metrics what the rules above deny, and let it pass"),
      },
      [](Config& config) -> void* { return &config.egress; },
      nullptr,
      &kDefaults<Egress>};
}

Section origin_section() {
  Setting uri{
      "uri",
      R"("https://host" or "http://host:port", "tcp://host:port" for tunnels; the same canonical one twice is an error)",
      [](const void* section) -> Value {
        const pool::Origin& origin = static_cast<const OriginSettings*>(section)->origin;
        return origin.host.empty() ? std::string() : origin.label();
      },
      [](void* section, Value value) {
        if (auto parsed = pool::parse_origin(std::get<std::string>(value))) {
          static_cast<OriginSettings*>(section)->origin = *parsed;
        }
      }};
  return {"origin",
          "overrides for one origin, in [origin.pool] [origin.request] [origin.upstream] and their sub-tables",
          true,
          {
              uri.looks_like(kOriginUri, R"("https://api.example.com")"),
              row<&OriginSettings::alias>("alias", "plain http://api.example.com/ goes to it as well")
                  .looks_like(kHostName, R"(["api.example.com", "api"])"),
              row<&OriginSettings::addresses>("addresses", "instead of DNS")
                  .looks_like(kPinnedAddress, R"(["127.0.0.1:8443"])"),
          },
          nullptr,
          nullptr,
          &kDefaults<OriginSettings>};
}

}  // namespace carpool::proxy::config
