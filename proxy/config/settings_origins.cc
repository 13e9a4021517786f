// The settings of the upstream side: pools, requests, DNS, protocols, TLS, egress, origins.
#include "pool/core/entry_index.h"
#include "proxy/config/setting_row.h"

namespace carpool::proxy::config {
namespace {

constexpr std::int64_t kMaxSize = 100'000;         // connections of one pool
constexpr std::int64_t kMaxStreams = 4095;         // the state word has 12 bits for users
constexpr std::int64_t kMaxRate = 1'000'000;       // per second
constexpr std::int64_t kMaxUsage = (1 << 20) - 1;  // the state word has 20 bits for uses

std::vector<Setting> pool_sizes() {
  return {
      row<&PoolSettings::size>("size", "maximum number of connections over all workers; exact").between(1, kMaxSize),
      row<&PoolSettings::min_idle>("min_idle", "idle connections to keep open").between(0, kMaxSize),
      row<&PoolSettings::max_streams>("max_streams",
                                      "maximum concurrent requests on one h2 connection, within the peer's own limit")
          .between(1, kMaxStreams),
      row<&PoolSettings::max_usage>("max_usage", "requests per connection; 0 = no limit").between(0, kMaxUsage),
      row<&PoolSettings::expire_time>("expire_time", "maximum age of a connection, jitter 10 %; 0s = no limit"),
      row<&PoolSettings::idle_timeout>("idle_timeout", "idle time after which a connection is closed; 0s = no limit"),
      row<&PoolSettings::learn_idle_timeout>(
          "learn_idle_timeout",
          "close connections before the origin does, by its Keep-Alive field and observed closes"),
      row<&PoolSettings::max_waiting>("max_waiting",
                                      "maximum number of requests waiting for a connection; 0 = fail at once")
          .between(0, kMaxConnections),
      row<&PoolSettings::wait_timeout>("wait_timeout", "maximum wait of a request; more than 0s").at_least(1),
      row<&PoolSettings::connect_timeout>("connect_timeout", "limit for DNS, TCP and TLS together").at_least(1),
      row<&PoolSettings::dns_timeout>("dns_timeout", "limit for DNS alone, within connect_timeout; 0s = none"),
      row<&PoolSettings::tls_timeout>("tls_timeout",
                                      "limit for the TLS handshake alone, within connect_timeout; 0s = none"),
      row<&PoolSettings::connect_rate>("connect_rate",
                                       "connections dialed per second over all workers; excess ones are dialed "
                                       "later, within wait_timeout; 0 = no limit")
          .between(0, kMaxRate),
      row<&PoolSettings::connect_burst>("connect_burst", "burst size for connect_rate; 0 = as many as connect_rate")
          .between(0, kMaxRate),
      row<&PoolSettings::max_tunnels>(
          "max_tunnels",
          "maximum CONNECT and upgraded connections; 0 = half of size on http(s) origins; on tcp "
          "size or, if that is 64, a quarter of pool.total, up to 1024")
          .between(0, kMaxSize),
  };
}

std::vector<Setting> pool_ways() {
  return {
      row<&PoolSettings::strategy>("strategy", "where the search for an idle connection starts"),
      row<&PoolSettings::maximize>("maximize", "open connections up to size before reusing one"),
      row<&PoolSettings::quarantine>("quarantine", "delay between a release and the next borrow of a connection"),
      row<&PoolSettings::cool_down>(
          "cool_down", "hold requests after a 429 or 503 with Retry-After until then; after that one goes ahead"),
      row<&PoolSettings::max_cool_down>("max_cool_down", "longest time that one Retry-After holds requests")
          .at_least(1),
      row<&PoolSettings::evict>("evict", "which idle connection is closed when pool.total.max_connections is reached"),
      row<&PoolSettings::reuse>(
          "reuse", "whether a request may use a connection that served others before; safe = by method and idle time"),
      row<&PoolSettings::leak_timeout>("leak_timeout", "report a borrow that lasts longer; 0s = only lost leases"),
      row<&PoolSettings::leak_action>("leak_action", "what happens to a reported connection"),
      row<&PoolSettings::classes>("classes", "2 to 4 priority classes, highest first, each with a share of the cap")
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
  for (Setting& row : pool_ways()) section.settings.push_back(row);
  return section;
}

Section warm_up_section() {
  return {"pool.warm_up",
          "connections opened before the first request",
          false,
          {
              row<&WarmUp::enabled>("enabled", "open them at start"),
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
      "spreading over several addresses, ejection of failing ones, retirement of connections to removed ones",
      false,
      {
          row<&Addresses::eject_after>("eject_after",
                                       "consecutive failures after which an address is ejected, never more than half "
                                       "of them; 0 = never")
              .between(0, 1000),
          row<&Addresses::eject_time>(
              "eject_time", "duration of an ejection; each one soon after another is longer by this time, up to 5m")
              .at_least(1),
          row<&Addresses::gone_after>("gone_after",
                                      "close connections to an address that DNS has not returned for this long")
              .at_least(1),
          row<&Addresses::retire_every>("retire_every", "interval between closing two such connections").at_least(1),
          row<&Addresses::balance>(
              "balance", "least_loaded: each request goes to the less loaded of two addresses; none: as strategy says"),
          row<&Addresses::slow_start>("slow_start", "time in which the share of a new address grows; 0s = at once"),
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
              row<&Total::origin_idle_timeout>("origin_idle_timeout",
                                               "remove a pool that no [[origin]] names after this time without use")
                  .at_least(1),
          },
          [](Config& config) -> void* { return &config.pool_total; },
          nullptr,
          &defaults<Total>()};
}

Section request_section() {
  return {
      "request",
      "one request and its response",
      false,
      {
          row<&Request::timeout>("timeout",
                                 "limit from the request's head to the response's last byte, waiting and dialing "
                                 "included; 0s = none"),
          row<&Request::response_header_timeout>("response_header_timeout",
                                                 "limit from the end of the request to the response's head; 1xx "
                                                 "heads extend it to at most twice its value")
              .at_least(1),
          row<&Request::idle_timeout>("idle_timeout", "limit without a byte in either direction").at_least(1),
          row<&Request::max_retries>(
              "max_retries",
              "retries of an idempotent request when a reused connection closes before the first response byte")
              .between(0, 8),
          row<&Request::retry_budget>("retry_budget",
                                      "retries allowed, as a percentage of the origin's requests, after an initial "
                                      "burst of one pool size; 100 = no limit")
              .between(0, 100),
          row<&Request::rate>("rate",
                              "requests per second to one origin over all workers; excess ones get 429; 0 = "
                              "no limit")
              .between(0, kMaxRate),
          row<&Request::rate_burst>("rate_burst", "burst size for rate; 0 = as many as rate").between(0, kMaxRate),
          row<&Request::retry_idempotent>("retry_idempotent", "retry PUT and DELETE too"),
          row<&Request::replay_buffer>("replay_buffer", "bytes of a request body kept for a retry")
              .between(0, 64 << 20),
          row<&Request::client_field>("client_field", "field that tells the origin the client's address (RFC 7239)"),
          row<&Request::retry_on>("retry_on",
                                  "when an idempotent request is retried besides, within max_retries and "
                                  "retry_budget: statuses, retriable-4xx (409), reset, connect-failure")
              .format(kRetryCondition, R"(["reset", "503"])"),
          row<&Request::per_try_timeout>("per_try_timeout",
                                         "limit of one attempt, from the whole request to the response's head; an "
                                         "idempotent request is then retried; 0s = none"),
          row<&Request::via>("via",
                             "add Via to requests; false for an origin that answers differently to a proxy, at the "
                             "cost of the detection of loops"),
      },
      [](Config& config) -> void* { return &config.request; },
      [](OriginSettings& origin) -> void* { return &origin.request; },
      &defaults<Request>()};
}

Section headers_section() {
  return {"request.headers",
          "fields that each request to one origin gets instead of the client's; docs/credentials.md",
          false,
          {},
          nullptr,
          [](OriginSettings& origin) -> void* { return &origin.headers; },
          &defaults<std::vector<SetField>>(),
          true};
}

Section dns_section() {
  return {"dns",
          "name resolution",
          false,
          {
              row<&Dns::min_ttl>("min_ttl", "minimum time that an answer is cached"),
              row<&Dns::max_ttl>("max_ttl", "maximum time that an answer is cached"),
              row<&Dns::stale_for>("stale_for", "how long an expired answer is served while the name server fails"),
              row<&Dns::negative_ttl>("negative_ttl", "how long the answer that a name does not exist is cached"),
          },
          [](Config& config) -> void* { return &config.dns; },
          nullptr,
          &defaults<Dns>()};
}

Section upstream_section() {
  return {"upstream",
          "protocols to origins",
          false,
          {
              row<&Upstream::protocols>("protocols", "ALPN over TLS; plain text is h1 unless only h2 is listed")
                  .format(kProtocol),
              row<&Upstream::lenient>(
                  "lenient",
                  "only in [origin.upstream]; bare_lf = accept lines of an HTTP/1.1 response head that end in LF alone")
                  .format(kLeniency, R"(["bare_lf"])"),
              row<&Upstream::proxy>("proxy", "a proxy through which origins are reached; docs/parent-proxy.md")
                  .format(kProxyUrl, R"("http://proxy.example.com:3128")"),
              row<&Upstream::proxy_credentials>("proxy_credentials",
                                                "for that proxy, \"user:password\": a text, or { file = \"/path\" }")
                  .shown_as(R"({ file = "/run/secrets/proxy" })"),
              row<&Upstream::no_proxy>("no_proxy", "origins reached directly: names, addresses and networks")
                  .format(kEgressPattern, R"(["*.internal.example.com", "10.0.0.0/8"])"),
          },
          [](Config& config) -> void* { return &config.upstream; },
          [](OriginSettings& origin) -> void* { return &origin.upstream; },
          &defaults<Upstream>()};
}

Section tls_section() {
  return {"upstream.tls",
          "TLS to origins; an origin with other settings has its own pool",
          false,
          {
              row<&Tls::ca_file>("ca_file",
                                 "CA certificates trusted instead of the system's; revocation lists (CRL) in the file "
                                 "are obeyed")
                  .format(kReadableFile, R"("/etc/carpool/ca.pem")"),
              row<&Tls::cert_file>("cert_file", "client certificate, with its chain; needs key_file")
                  .format(kReadableFile, R"("/etc/carpool/client.pem")"),
              row<&Tls::key_file>("key_file", "private key of cert_file")
                  .format(kReadableFile, R"("/etc/carpool/client.key")"),
              row<&Tls::min_version>("min_version", "lowest TLS version to accept"),
              row<&Tls::verify>("verify", "verify the origin's certificate; false accepts any certificate (insecure)"),
              row<&Tls::server_name>("server_name", "for SNI and verification; default: the origin's host")
                  .format(kHostName, R"("api.internal")"),
          },
          [](Config& config) -> void* { return &config.upstream.tls; },
          [](OriginSettings& origin) -> void* { return &origin.upstream.tls; },
          &defaults<Tls>()};
}

Section egress_section() {
  return {"egress",
          "permitted destinations; names are checked before, addresses after resolution",
          false,
          {
              row<&Egress::default_>("default", "rule for destinations in neither list"),
              row<&Egress::allow>("allow", "names, addresses and networks, each with an optional port")
                  .format(kEgressPattern, R"(["*.example.com:443"])"),
              row<&Egress::deny>("deny", "the same; takes precedence over allow")
                  .format(kEgressPattern, R"(["169.254.0.0/16"])"),
              row<&Egress::report_only>("report_only", "log and count what the rules deny, but allow it"),
          },
          [](Config& config) -> void* { return &config.egress; },
          nullptr,
          &defaults<Egress>()};
}

Section origin_section() {
  Setting uri{"uri",
              R"("https://host", "http://host:port", or "tcp://host:port" for tunnels; each origin may be listed once)",
              [](const void* section) -> Value {
                const pool::Origin& origin = static_cast<const OriginSettings*>(section)->origin;
                return origin.host.empty() ? std::string() : origin.label();
              },
              [](void* section, Value value) {
                if (auto parsed = pool::parse_origin(std::get<std::string>(value))) {
                  static_cast<OriginSettings*>(section)->origin = *parsed;
                }
              }};
  return {
      "origin",
      "overrides for one origin, in [origin.pool], [origin.request], [origin.upstream] and their sub-tables",
      true,
      {
          uri.format(kOriginUri, R"("https://api.example.com")"),
          row<&OriginSettings::alias>("alias", "host names that plain http:// requests may use for this origin")
              .format(kHostName, R"(["api.example.com", "api"])"),
          row<&OriginSettings::addresses>(
              "addresses", "addresses to dial instead of resolving the name; a Unix socket: \"unix:/path\"")
              .format(kPinnedAddress, R"(["127.0.0.1:8443"])"),
          row<&OriginSettings::allow>("allow",
                                      "requests that it may get, by method and path; others: 403, and no tunnel")
              .format(kRequestRule, R"(["GET /v1/*", "POST /v1/orders"])"),
          row<&OriginSettings::intercept>(
              "intercept", "end the TLS of clients that send CONNECT for this https origin; needs intercept.ca_dir"),
          row<&OriginSettings::profile>("profile",
                                        "streaming = no request.idle_timeout for text/event-stream, gRPC and upgraded "
                                        "connections; docs/operations.md"),
      },
      nullptr,
      nullptr,
      &defaults<OriginSettings>()};
}

Section oauth2_section() {
  return {"oauth2",
          "a token for each request to one origin, by its client credentials; docs/credentials.md",
          false,
          {
              row<&OAuth2::token_url>("token_url", "the authorization server's token endpoint; https, or loopback")
                  .format(kTokenUrl, R"("https://login.example.com/oauth2/token")"),
              row<&OAuth2::client_id>("client_id", "the client's name there").format(kVisibleText, R"("orders")"),
              row<&OAuth2::client_secret>("client_secret", "its secret: a text, or { file = \"/path\" }")
                  .shown_as(R"({ file = "/run/secrets/client-secret" })"),
              row<&OAuth2::scope>("scope", "the scopes to ask for, with spaces between")
                  .format(kVisibleText, R"("read write")"),
              row<&OAuth2::audience>("audience", "the audience to ask for")
                  .format(kVisibleText, R"("https://api.example.com")"),
              row<&OAuth2::client_authentication>("client_authentication",
                                                  "how the client names itself: in Authorization, or in the body"),
              row<&OAuth2::timeout>("timeout",
                                    "limit for a token request, and for a request that waits for the first token")
                  .at_least(1),
          },
          nullptr,
          [](OriginSettings& origin) -> void* { return &origin.oauth2; },
          &defaults<OAuth2>()};
}

Section intercept_section() {
  return {"intercept",
          "TLS of clients to origins with intercept = true, with certificates of an own authority",
          false,
          {
              row<&Intercept::ca_dir>("ca_dir", "the authority's ca.pem and ca.key, from `carpool ca init`")
                  .format(kFolder, R"("/run/carpool/ca")"),
              row<&Intercept::on_distrust>("on_distrust",
                                           "what a client gets after it rejected a certificate of the authority"),
          },
          [](Config& config) -> void* { return &config.intercept; },
          nullptr,
          &defaults<Intercept>()};
}

}  // namespace carpool::proxy::config
