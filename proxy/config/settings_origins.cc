// The settings of the upstream side: requests, DNS, protocols, TLS, egress, origins.
#include "proxy/config/setting_row.h"

namespace carpool::proxy::config {
namespace {

constexpr std::int64_t kMaxRate = 1'000'000;  // per second

std::vector<Setting> request_rows() {
  return {
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
      row<&Request::rate_burst>("rate_burst", "burst size for rate; 0 = as many as rate").rare().between(0, kMaxRate),
      row<&Request::retry_idempotent>("retry_idempotent", "also retry PUT and DELETE"),
      row<&Request::replay_buffer>("replay_buffer", "bytes of a request body kept for a retry")
          .rare()
          .between(0, 64 << 20),
      row<&Request::client_field>("client_field", "field that tells the origin the client's address (RFC 7239)"),
  };
}

// Attempts beside the first one, and Via.
std::vector<Setting> attempt_rows() {
  return {
      row<&Request::retry_on>("retry_on",
                              "further conditions for a retry, within max_retries and retry_budget: statuses, "
                              "retriable-4xx (409) and reset for idempotent requests without a body; "
                              "connect-failure for all")
          .format(kRetryCondition, R"(["reset", "503"])"),
      row<&Request::per_try_timeout>("per_try_timeout",
                                     "limit of one attempt, from the end of the request to the response's head; then "
                                     "an idempotent request is retried; 0s = none")
          .rare(),
      row<&Request::hedge>("hedge",
                           "let a late attempt go on beside its retry by per_try_timeout; the first response is used")
          .rare(),
      row<&Request::via>("via",
                         "add Via to requests; false for an origin that responds differently to a proxy; then loops "
                         "through it are not detected")
          .rare(),
  };
}

}  // namespace

Section request_section() {
  Section section{"request",
                  "one request and its response",
                  false,
                  request_rows(),
                  [](Config& config) -> void* { return &config.request; },
                  [](OriginSettings& origin) -> void* { return &origin.request; },
                  &defaults<Request>()};
  for (Setting& row : attempt_rows()) section.settings.push_back(row);
  return section;
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
  return {
      "dns",
      "name resolution",
      false,
      {
          row<&Dns::min_ttl>("min_ttl", "minimum time that an answer is cached").rare(),
          row<&Dns::max_ttl>("max_ttl", "maximum time that an answer is cached"),
          row<&Dns::stale_for>("stale_for", "how long an expired answer is served while the name server fails").rare(),
          row<&Dns::negative_ttl>("negative_ttl", "time that a negative answer (no such name) is cached").rare(),
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
              row<&Upstream::protocols>("protocols",
                                        "protocols offered by ALPN over TLS; plain text is h1 unless only h2 is listed")
                  .format(kProtocol),
              row<&Upstream::lenient>(
                  "lenient",
                  "only in [origin.upstream]; bare_lf = accept lines of an HTTP/1.1 response head that end in LF alone")
                  .rare()
                  .format(kLeniency, R"(["bare_lf"])"),
              row<&Upstream::proxy>("proxy", "a proxy through which origins are reached; docs/parent-proxy.md")
                  .format(kProxyUrl, R"("http://proxy.example.com:3128")"),
              row<&Upstream::proxy_credentials>(
                  "proxy_credentials", "credentials for that proxy, \"user:password\": a text, or { file = \"/path\" }")
                  .shown_as(R"({ file = "/run/secrets/proxy" })"),
              row<&Upstream::no_proxy>("no_proxy", "origins reached directly: names, addresses and networks")
                  .format(kEgressPattern, R"(["*.internal.example.com", "10.0.0.0/8"])"),
          },
          [](Config& config) -> void* { return &config.upstream; },
          [](OriginSettings& origin) -> void* { return &origin.upstream; },
          &defaults<Upstream>()};
}

Section tls_section() {
  return {
      "upstream.tls",
      "TLS to origins; an origin with other settings has its own pool",
      false,
      {
          row<&Tls::ca_file>(
              "ca_file", "CA certificates trusted instead of the system's; revocation lists (CRL) in the file apply")
              .format(kReadableFile, R"("/etc/carpool/ca.pem")"),
          row<&Tls::cert_file>("cert_file", "client certificate, with its chain; needs key_file")
              .format(kReadableFile, R"("/etc/carpool/client.pem")"),
          row<&Tls::key_file>("key_file", "private key of cert_file")
              .format(kReadableFile, R"("/etc/carpool/client.key")"),
          row<&Tls::min_version>("min_version", "lowest TLS version to accept"),
          row<&Tls::verify>("verify", "verify the origin's certificate; false accepts any certificate (insecure)"),
          row<&Tls::server_name>("server_name", "name for SNI and verification; default: the origin's host")
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
          row<&OriginSettings::allow>(
              "allow", "requests that the origin may get, by method and path; others, and CONNECT, get 403")
              .format(kRequestRule, R"(["GET /v1/*", "POST /v1/orders"])"),
          row<&OriginSettings::intercept>(
              "intercept",
              "terminate the TLS of clients that send CONNECT for this https origin; needs intercept.ca_dir"),
          row<&OriginSettings::profile>("profile",
                                        "streaming = no request.idle_timeout for text/event-stream, gRPC and upgraded "
                                        "connections; docs/operations.md"),
      },
      nullptr,
      nullptr,
      &defaults<OriginSettings>()};
}

Section oauth2_section() {
  return {
      "oauth2",
      "a token for each request to one origin, by its client credentials; docs/credentials.md",
      false,
      {
          row<&OAuth2::token_url>("token_url", "the authorization server's token endpoint; https, or loopback")
              .format(kTokenUrl, R"("https://login.example.com/oauth2/token")"),
          row<&OAuth2::client_id>("client_id", "client identifier at the authorization server")
              .format(kVisibleText, R"("orders")"),
          row<&OAuth2::client_secret>("client_secret", "client secret: a text, or { file = \"/path\" }")
              .shown_as(R"({ file = "/run/secrets/client-secret" })"),
          row<&OAuth2::scope>("scope", "requested scopes, separated by spaces").format(kVisibleText, R"("read write")"),
          row<&OAuth2::audience>("audience", "requested audience")
              .rare()
              .format(kVisibleText, R"("https://api.example.com")"),
          row<&OAuth2::client_authentication>(
              "client_authentication", "where the client's credentials are sent: in Authorization, or in the body")
              .rare(),
          row<&OAuth2::timeout>("timeout",
                                "limit for a token request, and for a request that waits for the first token")
              .rare()
              .at_least(1),
      },
      nullptr,
      [](OriginSettings& origin) -> void* { return &origin.oauth2; },
      &defaults<OAuth2>()};
}

Section intercept_section() {
  return {"intercept",
          "TLS with the clients of origins with intercept = true, by certificates of carpool's own authority",
          false,
          {
              row<&Intercept::ca_dir>("ca_dir", "the authority's ca.pem and ca.key, from `carpool ca init`")
                  .format(kFolder, R"("/var/lib/carpool/ca")"),
              row<&Intercept::on_distrust>("on_distrust",
                                           "what a client gets after it rejected a certificate of the authority")
                  .rare(),
          },
          [](Config& config) -> void* { return &config.intercept; },
          nullptr,
          &defaults<Intercept>()};
}

}  // namespace carpool::proxy::config
