// Config: the content of config.toml as plain values. Members are named like their keys. Their initialisers are the
// only definition of the defaults, so `Config{}` is used without a file. Read, explained and printed by schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pool/origin.h"
#include "pool/policy/strategy.h"

namespace carpool::proxy::config {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using Size = std::uint64_t;  // bytes
inline constexpr Size kKiB = 1024;
inline constexpr Duration kUnlimited = Duration::max();  // the value "unlimited" of the settings that accept it

using pool::Evict;
using pool::Strategy;
enum class Reuse : std::uint8_t { never, always, safe };
// The field that names the client to the origin: none, X-Forwarded-For, or Forwarded (RFC 7239).
enum class ClientField : std::uint8_t { off, x_forwarded_for, forwarded };
// streaming: responses that are never complete may be silent.
enum class Profile : std::uint8_t { standard, streaming };
enum class LeakAction : std::uint8_t { report, discard };
enum class EgressAction : std::uint8_t { allow, deny };
enum class Execution : std::uint8_t { adaptive, execute_produce, produce_execute, produce };
enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };
enum class LogFormat : std::uint8_t { json, text };
enum class AccessFormat : std::uint8_t { same, json, text, combined };
enum class TlsVersion : std::uint8_t { tls12, tls13 };
enum class ClientAuthentication : std::uint8_t { basic, post };
enum class OnDistrust : std::uint8_t { tunnel, fail };

// The unit that counts as one client for fair shares among TCP clients on loopback.
enum class LoopbackClient : std::uint8_t { process, user, connection };

struct Listen {
  std::string address = "127.0.0.1:3128";  // or "[::1]:3128", "unix:/path"; port 0: any free one
  std::string origin;                      // canonical label, as pool::parse_origin takes it; empty: no fixed origin
  bool route_by_host = true;
  bool connect = true;
  std::optional<std::vector<std::uint16_t>> connect_ports;  // absent: any on loopback and Unix sockets, 443 elsewhere
  bool open = false;
  bool preserve_host = false;
  Duration idle_timeout = seconds(60);
  Duration header_timeout = seconds(10);
  std::uint32_t max_connections = 10000;
  Size max_header_bytes = 64 * kKiB;
  std::uint32_t max_headers = 100;
  Size max_target = 16 * kKiB;
  Size max_body = 0;         // 0: no limit
  Size body_min_rate = 500;  // bytes a second; 0: no limit
  Duration body_grace = seconds(15);
  Duration half_close = seconds(1);  // zero: at once; kUnlimited: never
  std::string class_name;            // the priority class of its requests; empty: by their Priority field
  std::string mode;   // of a Unix socket's file, four octal digits; empty: by the umask, 0660 with `group`
  std::string group;  // likewise, name or number; empty: the process's
  std::string cert_file, key_file;   // TLS with this identity; empty: plain text
  std::string client_ca_file;        // a client needs a certificate of these authorities; empty: none is requested
  std::string credentials_file;      // see credential.h; empty: a client needs none
  bool proxy_protocol = false;       // a trusted peer begins with the header that names the client
  std::vector<std::string> trusted;  // addresses and networks; a Unix socket's peers are trusted
  LoopbackClient loopback_client = LoopbackClient::process;
  std::uint32_t twin = 0;  // its number among the listeners with this address, all of which have port 0
  // Returns the name by which a reload and a hand-over find the listener again: "127.0.0.1:3128", "127.0.0.1:0#1".
  std::string name() const { return twin == 0 ? address : address + '#' + std::to_string(twin); }
  friend bool operator==(const Listen&, const Listen&) = default;
};

struct Admin {
  std::string address = "127.0.0.1:9901";
  bool enabled = true;
  std::string token_file;
  std::string cert_file, key_file;  // TLS with this identity; empty: plain text
  std::string client_ca_file;       // clients must present a certificate; needs cert_file
  friend bool operator==(const Admin&, const Admin&) = default;
};

struct Metrics {
  bool enabled = true;
  std::string address;
  std::uint32_t max_origins = 200;
  Duration summary_interval = minutes(5);
  friend bool operator==(const Metrics&, const Metrics&) = default;
};

inline constexpr std::size_t kMaxAttributeKey = 64;  // of Otlp::resource, and of carpool's own attributes
// Spans and metrics for an OpenTelemetry collector, by OTLP over HTTP.
struct Otlp {
  std::string endpoint;  // the base URL; empty: off
  bool traces = true;
  bool metrics = true;
  std::uint32_t sample = 0;  // one of this many requests without a trace context begins a trace; 0: none
  Duration interval = seconds(10);
  Duration timeout = seconds(10);
  Size buffer = 1024 * kKiB;  // of each worker
  std::string service_name = "carpool";
  std::vector<std::string> resource;  // "key=value"
  friend bool operator==(const Otlp&, const Otlp&) = default;
};

struct WarmUp {
  bool enabled = false;
  std::uint32_t size = 2;
  friend bool operator==(const WarmUp&, const WarmUp&) = default;
};

struct HealthCheck {
  bool enabled = true;
  Duration interval = seconds(30);
  std::string probe;
  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

// How a connection is chosen where an origin has several addresses: by the load of its address, or as if it had one.
enum class Balance : std::uint8_t { least_loaded, none };

// [pool.addresses]
struct Addresses {
  std::uint32_t eject_after = 5;  // 0: never
  Duration eject_time = seconds(10);
  Duration gone_after = seconds(30);
  Duration retire_every = milliseconds(100);
  Balance balance = Balance::least_loaded;
  Duration slow_start = seconds(10);
  friend bool operator==(const Addresses&, const Addresses&) = default;
};

// The value "auto" of settings that change while the program runs.
inline constexpr std::uint32_t kAutomatic = UINT32_MAX;

// [pool], or that of one origin with its overrides.
struct PoolSettings {
  std::uint32_t size = 64;  // kAutomatic: it follows the load, from min_size to max_size
  std::uint32_t min_size = 4, max_size = 256;
  std::uint32_t min_idle = 0;
  std::uint32_t max_streams = 100;
  std::uint32_t max_usage = 0;          // 0: no limit
  Duration expire_time = minutes(30);   // zero: never
  Duration idle_timeout = seconds(60);  // zero: never
  bool learn_idle_timeout = true;
  std::uint32_t max_waiting = 1024;  // 0: fail at once
  Duration wait_timeout = seconds(3);
  Duration connect_timeout = seconds(10);
  Duration dns_timeout{}, tls_timeout{};  // within connect_timeout; zero: that alone
  std::uint32_t connect_rate = 0;         // a second; 0: no limit
  std::uint32_t connect_burst = 0;        // 0: a second's worth
  std::uint32_t max_tunnels = 0;          // 0: half of size on http(s) origins, tcp_size on tcp
  std::uint32_t tcp_size = kAutomatic;    // of a tcp origin; 0: size; kAutomatic: a quarter of pool.total
  Strategy strategy = Strategy::first;
  bool maximize = false;
  Duration quarantine{};
  bool cool_down = false;
  Duration max_cool_down = seconds(60);
  Evict evict = Evict::last_use;
  Reuse reuse = Reuse::safe;
  Duration leak_timeout{};
  LeakAction leak_action = LeakAction::report;
  std::vector<std::string> classes;  // the highest first; none: all are equal
  WarmUp warm_up;
  HealthCheck health_check;
  Addresses addresses;

  bool auto_size() const { return size == kAutomatic; }
  // Returns the largest size.
  std::uint32_t largest() const { return auto_size() ? max_size : size; }
  friend bool operator==(const PoolSettings&, const PoolSettings&) = default;
};

// [pool.total]: limits over all origins.
struct Total {
  std::uint32_t max_connections = 4096;
  std::uint32_t max_origins = 1024;
  Duration origin_idle_timeout = minutes(10);
  friend bool operator==(const Total&, const Total&) = default;
};

struct Request {
  Duration timeout{};  // zero: none
  Duration response_header_timeout = seconds(60);
  Duration idle_timeout = seconds(60);
  std::uint32_t max_retries = 1;
  std::uint32_t retry_budget = 20;  // percent of an origin's requests; 100: no bound
  std::uint32_t rate = 0;           // a second; 0: no limit
  std::uint32_t rate_burst = 0;     // 0: a second's worth
  bool retry_idempotent = false;
  Size replay_buffer = 64 * kKiB;
  ClientField client_field = ClientField::off;
  bool via = true;
  std::vector<std::string> retry_on;  // conditions of RetryConditions (proxy/upstream/origin/retry_budget.h)
  Duration per_try_timeout{};         // zero: none
  bool hedge = false;
  friend bool operator==(const Request&, const Request&) = default;
};

// Handover from the previous process, without an interval in which no process listens.
struct Handover {
  std::string address;  // "unix:/path"; empty: off
  std::uint32_t warm_rate = 50;
  friend bool operator==(const Handover&, const Handover&) = default;
};

// The utilizations, in percent, at which carpool begins to shed load; 0: never.
struct Overload {
  Size memory_limit = 0;  // 0: the cgroup's limit
  std::uint32_t stop_keep_alive = 85;
  std::uint32_t refuse_clients = 90;
  std::uint32_t close_idle = 95;
  friend bool operator==(const Overload&, const Overload&) = default;
};

struct Dns {
  Duration min_ttl = seconds(5);
  Duration max_ttl = minutes(5);
  Duration stale_for = minutes(10);
  Duration negative_ttl = seconds(5);  // zero: each request repeats the lookup
  friend bool operator==(const Dns&, const Dns&) = default;
};

struct Tls {
  std::string ca_file;  // empty: the system's bundle
  std::string cert_file, key_file;
  TlsVersion min_version = TlsVersion::tls12;
  bool verify = true;
  std::string server_name;  // empty: the origin's host
  friend bool operator==(const Tls&, const Tls&) = default;
};

// Secret: a value that is never shown, or the file that holds it.
struct Secret {
  std::string text;          // with its variables expanded
  std::string file, prefix;  // instead of `text`: `prefix`, then the file's content; read again when the file changes
  bool given() const { return !text.empty() || !file.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;
};

struct Upstream {
  std::vector<std::string> protocols = {"h2", "h1"};
  std::vector<std::string> lenient;   // "bare_lf"; of single origins only
  std::string proxy;                  // "http://host:port": origins are reached through it; empty: directly
  Secret proxy_credentials;           // "user:password"
  std::vector<std::string> no_proxy;  // see egress_rule.h: these are reached directly
  Tls tls;
  friend bool operator==(const Upstream&, const Upstream&) = default;
};

struct Egress {
  EgressAction default_ = EgressAction::allow;
  std::vector<std::string> allow, deny;  // see egress_rule.h
  bool report_only = false;
  friend bool operator==(const Egress&, const Egress&) = default;
};

// One field of [origin.request.headers].
struct SetField {
  std::string name;
  Secret value;
  friend bool operator==(const SetField&, const SetField&) = default;
};

// [origin.oauth2]: tokens by client credentials (RFC 6749 §4.4).
struct OAuth2 {
  std::string token_url;  // empty: none
  std::string client_id;
  Secret client_secret;
  std::string scope, audience;
  ClientAuthentication client_authentication = ClientAuthentication::basic;
  Duration timeout = seconds(10);
  friend bool operator==(const OAuth2&, const OAuth2&) = default;
};

// One [[origin]], fully resolved: settings without an override come from the sections above it.
struct OriginSettings {
  // From `uri`. origin.tls: 0 where `upstream` equals Config::upstream, else one number for each different one. A URI
  // is listed at most once, so routing compares scheme, host and port and takes the number from here.
  pool::Origin origin;
  std::vector<std::string> alias;      // canonical hosts
  std::vector<std::string> addresses;  // "IP:PORT" or "unix:/path", instead of DNS
  std::vector<std::string> allow;      // requests that it may receive, "GET /v1/*"; empty: all
  bool intercept = false;              // CONNECT to it ends in this process
  Profile profile = Profile::standard;
  PoolSettings pool;
  Request request;
  std::vector<SetField> headers;  // [origin.request.headers]
  OAuth2 oauth2;
  Upstream upstream;
  friend bool operator==(const OriginSettings&, const OriginSettings&) = default;
};

// The origins that CONNECT reaches in the clear; each is marked by OriginSettings::intercept.
struct Intercept {
  std::string ca_dir;  // ca.pem and ca.key; empty: none is intercepted
  OnDistrust on_distrust = OnDistrust::tunnel;
  friend bool operator==(const Intercept&, const Intercept&) = default;
};

struct Threads {
  Execution strategy = Execution::adaptive;
  std::uint32_t min = 2;
  std::uint32_t max = 16;
  std::int32_t reserved = -1;  // -1: by a heuristic
  Duration idle_timeout = seconds(60);
  std::uint32_t max_evict_count = 1;
  Size stack_size = 256 * kKiB;
  std::uint32_t max_tasks = 200;
  std::uint32_t inline_handshakes = 200;
  friend bool operator==(const Threads&, const Threads&) = default;
};

struct Log {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::json;
  std::string file;    // empty: stderr
  std::string syslog;  // "unix:/path" of a daemon's socket; empty: none
  bool access = true;
  AccessFormat access_format = AccessFormat::same;  // same: `format`
  std::string access_file;                          // empty: with the other lines
  std::uint32_t access_sample = 1;                  // logs one of this many successful exchanges
  Duration sync{};                                  // zero: the system decides when lines reach the disk
  friend bool operator==(const Log&, const Log&) = default;
};

struct Config {
  std::uint32_t workers = 1;  // "auto" is resolved when read: never 0
  Duration shutdown_grace = seconds(25);
  Duration drain_delay{};
  std::vector<Listen> listen = {Listen{}};  // never empty
  Admin admin;
  Metrics metrics;
  Otlp otlp;
  PoolSettings pool;
  Total pool_total;
  Request request;
  Dns dns;
  Upstream upstream;
  Egress egress;
  std::vector<OriginSettings> origins;
  Intercept intercept;
  Handover handover;
  Overload overload;
  Threads threads;
  Log log;
  friend bool operator==(const Config&, const Config&) = default;
};

// Returns true if the addresses of clients may be sent to an origin (request.client_field).
inline bool sends_client_addresses(const Config& config) {
  bool sends = config.request.client_field != ClientField::off;
  for (const OriginSettings& origin : config.origins) sends |= origin.request.client_field != ClientField::off;
  return sends;
}

}  // namespace carpool::proxy::config
