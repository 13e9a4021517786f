// The settings of the program itself: workers, listeners, admin, metrics, threads, log.
#include "proxy/config/setting_row.h"

namespace carpool::proxy::config {
namespace {

constexpr std::int64_t kMaxHead = 16 << 20;
constexpr std::int64_t kMaxBodyRate = 1 << 30;

std::vector<Setting> listen_limits() {
  return {
      row<&Listen::idle_timeout>("idle_timeout",
                                 "idle time after which a client connection without a request is closed")
          .at_least(1),
      row<&Listen::header_timeout>("header_timeout", "time from the first byte of a request to the end of its head")
          .at_least(1),
      row<&Listen::max_connections>("max_connections", "maximum number of concurrent client connections")
          .between(1, kMaxConnections),
      row<&Listen::max_header_bytes>("max_header_bytes", "size limit of a request's head; above it: 431")
          .rare()
          .between(1024, kMaxHead),
      row<&Listen::max_headers>("max_headers", "limit of header fields in a request; above it: 431")
          .rare()
          .between(1, 10'000),
      row<&Listen::max_target>("max_target", "size limit of a request's target; above it: 414")
          .rare()
          .between(64, kMaxHead),
      row<&Listen::max_body>("max_body", "size limit of a request's body; above it: 413; 0 = no limit"),
      row<&Listen::body_min_rate>(
          "body_min_rate",
          "minimum average rate, in bytes per second, of a request's body; below it: 408; "
          "without a Content-Length only while a request waits for its connection, and likewise "
          "for the reader of a response; 0 = no limit")
          .rare()
          .between(0, kMaxBodyRate),
      row<&Listen::body_grace>("body_grace", "time before body_min_rate applies to a body or a reader").rare(),
      row<&Listen::half_close>("half_close",
                               "time for the first byte of the response to a client that sent FIN, before its "
                               "request is cancelled; 0s = none")
          .rare()
          .takes_unlimited(),
      row<&Listen::class_name>(
          "class", "priority class of the listener's requests, see pool.classes; default: by the Priority field")
          .format(kClassName, R"("high")"),
  };
}

// Access to the file of a Unix socket.
std::vector<Setting> listen_file() {
  return {
      row<&Listen::mode>("mode", "mode of a Unix socket's file; default: by the umask, or 0660 if group is set")
          .format(kFileMode, R"("0660")"),
      row<&Listen::group>("group", "group of a Unix socket's file; default: the process's")
          .format(kGroup, R"("www-data")"),
  };
}

// TLS with the applications.
std::vector<Setting> listen_tls() {
  return {
      row<&Listen::cert_file>("cert_file", "TLS: the certificate of this listener, with its chain; needs key_file")
          .format(kReadableFile, R"("/etc/carpool/tls.crt")"),
      row<&Listen::key_file>("key_file", "private key of cert_file").format(kReadableFile, R"("/etc/carpool/tls.key")"),
      row<&Listen::client_ca_file>("client_ca_file",
                                   "clients must present a certificate issued by one of these; revocation lists (CRL) "
                                   "in the file apply; needs cert_file")
          .format(kReadableFile, R"("/etc/carpool/clients.pem")"),
  };
}

std::vector<Setting> listen_authentication() {
  return {
      row<&Listen::credentials_file>("credentials_file",
                                     "each request needs credentials (Proxy-Authorization) that this file lists, as "
                                     "`carpool credential` makes them")
          .format(kReadableFile, R"("/etc/carpool/credentials")"),
  };
}

}  // namespace

Section top_section() {
  return {
      "",
      "the program",
      false,
      {
          row<&Config::workers>("workers", R"(number of event loops; "auto" = one per core that the cgroup grants)")
              .between(1, 128)
              .takes_auto()
              .restart(),
          row<&Config::shutdown_grace>(
              "shutdown_grace", "time for running requests to complete after SIGTERM; keep it below Kubernetes' 30 s"),
          row<&Config::drain_delay>("drain_delay",
                                    "time to keep accepting after SIGTERM while /readyz already returns 503"),
      },
      [](Config& config) -> void* { return &config; },
      nullptr,
      &defaults<Config>()};
}

std::vector<Setting> listen_peers() {
  return {
      row<&Listen::proxy_protocol>("proxy_protocol",
                                   "connections begin with a PROXY header (v1 or v2), which names the client"),
      row<&Listen::trusted>("trusted", "addresses and networks that may send a PROXY header; all others are refused")
          .format(kNetwork, R"(["10.0.0.0/8"])"),
      row<&Listen::loopback_client>("loopback_client",
                                    "what counts as one client in fair queueing, for TCP clients on loopback")
          .rare(),
  };
}

Section listen_section() {
  Section section{
      "listen",
      "an address on which carpool listens for applications; repeatable",
      true,
      {
          row<&Listen::address>(
              "address",
              R"(address to listen on; also "[::1]:3128", "unix:/run/carpool/proxy.sock"; port 0 = any free port)")
              .format(kListenAddress),
          row<&Listen::origin>("origin", "the only origin of this listener, whatever the Host field")
              .format(kHttpOrigin, R"("https://api.example.com")"),
          row<&Listen::route_by_host>("route_by_host", "forward `GET /x` with `Host: a` to http://a"),
          row<&Listen::connect>("connect", "accept CONNECT; never if origin is set"),
          row<&Listen::connect_ports>("connect_ports",
                                      "ports that CONNECT may name; default: any on loopback and Unix "
                                      "sockets, 443 elsewhere")
              .between(1, 65535)
              .shown_as("[443]"),
          row<&Listen::open>("open", "allow a non-loopback address without further conditions"),
          row<&Listen::preserve_host>("preserve_host", "with `origin`: forward the request's Host unchanged"),
      },
      nullptr,
      nullptr,
      &defaults<Listen>()};
  for (Setting& row : listen_limits()) section.settings.push_back(row);
  for (Setting& row : listen_file()) section.settings.push_back(row);
  for (Setting& row : listen_tls()) section.settings.push_back(row);
  for (Setting& row : listen_authentication()) section.settings.push_back(row);
  for (Setting& row : listen_peers()) section.settings.push_back(row);
  return section;
}

Section admin_section() {
  return {
      "admin",
      "the operator's page, JSON API and metrics",
      false,
      {
          row<&Admin::address>(
              "address", R"(address to listen on; also "unix:/run/carpool/admin.sock" (mode 0600, same uid or root))")
              .format(kListenAddress)
              .restart(),
          row<&Admin::enabled>("enabled", "false: no admin listener").restart(),
          row<&Admin::token_file>("token_file", "file with the bearer token; required for a non-loopback address")
              .format(kReadableFile, R"("/etc/carpool/admin.token")"),
          row<&Admin::cert_file>("cert_file", "TLS: the certificate of this endpoint, with its chain; needs key_file")
              .format(kReadableFile, R"("/etc/carpool/admin.crt")"),
          row<&Admin::key_file>("key_file", "private key of cert_file")
              .format(kReadableFile, R"("/etc/carpool/admin.key")"),
          row<&Admin::client_ca_file>("client_ca_file",
                                      "clients must present a certificate issued by one of these; needs cert_file")
              .format(kReadableFile, R"("/etc/carpool/operators.pem")"),
      },
      [](Config& config) -> void* { return &config.admin; },
      nullptr,
      &defaults<Admin>()};
}

Section metrics_section() {
  return {"metrics",
          "Prometheus metrics, and counters in the format of SimplePool, the pool of light-4j's HTTP client",
          false,
          {
              row<&Metrics::enabled>("enabled", "false: /metrics and /pool/metrics answer 503"),
              row<&Metrics::address>("address", "an extra listener that serves only /metrics, /livez and /readyz")
                  .format(kListenAddress, R"("0.0.0.0:9902")")
                  .restart(),
              row<&Metrics::max_origins>(
                  "max_origins", R"(number of origins with a label of their own; the others share origin="other")")
                  .between(1, 100'000)
                  .restart(),
              row<&Metrics::summary_interval>("summary_interval", "interval of the summary log line; 0s = off")
                  .rare()
                  .restart(),
          },
          [](Config& config) -> void* { return &config.metrics; },
          nullptr,
          &defaults<Metrics>()};
}

Section otlp_section() {
  return {
      "otlp",
      "spans and metrics for an OpenTelemetry collector, by OTLP over HTTP; docs/tracing.md",
      false,
      {
          row<&Otlp::endpoint>("endpoint",
                               "URL of the collector, to which /v1/traces and /v1/metrics are appended; none = off")
              .format(kOtlpEndpoint, R"("http://127.0.0.1:4318")"),
          row<&Otlp::traces>("traces", "export a span for each request whose traceparent is sampled"),
          row<&Otlp::metrics>("metrics", "export the metrics of /metrics"),
          row<&Otlp::sample>("sample",
                             "one in this many requests without a traceparent begins a trace; 1 = all, 0 = none")
              .between(0, 1'000'000'000),
          row<&Otlp::interval>("interval",
                               "interval of the exports; spans are exported earlier if half of the buffer is full")
              .rare()
              .between(100, 3'600'000),
          row<&Otlp::timeout>("timeout", "limit for a response of the collector").rare().between(1, 3'600'000),
          row<&Otlp::buffer>("buffer", "memory of each worker for spans that wait for their export; others are dropped")
              .rare()
              .between(64 << 10, 64 << 20),
          row<&Otlp::service_name>("service_name", "service.name of the spans and metrics").format(kVisibleText),
          row<&Otlp::resource>("resource", "other attributes of the resource, as key=value")
              .format(kResourceAttribute, R"(["k8s.pod.name=${POD_NAME:-none}"])"),
      },
      [](Config& config) -> void* { return &config.otlp; },
      nullptr,
      &defaults<Otlp>()};
}

Section handover_section() {
  return {"handover",
          "upgrade without interruption: a starting process takes over the sockets of the running one",
          false,
          {
              row<&Handover::address>("address", "socket on which the running process hands over (same user or root)")
                  .format(kUnixAddress, R"("unix:/run/carpool/handover.sock")")
                  .restart(),
              row<&Handover::warm_rate>("warm_rate", "connections per second that the new process opens in advance")
                  .rare()
                  .between(1, 100'000)
                  .restart(),
          },
          [](Config& config) -> void* { return &config.handover; },
          nullptr,
          &defaults<Handover>()};
}

Section overload_section() {
  return {
      "overload",
      "load shedding stages when memory or file descriptors run short; percent of the limit, 0 = never",
      false,
      {
          row<&Overload::memory_limit>("memory_limit", R"(memory limit; "0" = the cgroup's limit)"),
          row<&Overload::stop_keep_alive>("stop_keep_alive",
                                          "threshold from which responses close their client connection")
              .rare()
              .between(0, 100),
          row<&Overload::refuse_clients>("refuse_clients", "threshold from which new clients get 503 with Retry-After")
              .rare()
              .between(0, 100),
          row<&Overload::close_idle>("close_idle", "threshold from which idle client and origin connections are closed")
              .rare()
              .between(0, 100),
      },
      [](Config& config) -> void* { return &config.overload; },
      nullptr,
      &defaults<Overload>()};
}

Section threads_section() {
  return {"threads",
          "the thread pool of adaptive execution; loops and reserved threads are not counted in max",
          false,
          {
              row<&Threads::strategy>("strategy", "how tasks that may block are executed").restart(),
              row<&Threads::min>("min", "minimum number of threads").rare().between(0, 10'000).restart(),
              row<&Threads::max>("max", "maximum number of threads").between(1, 10'000).restart(),
              row<&Threads::reserved>("reserved",
                                      "threads reserved to take over a loop; -1 = by the number of cores, 0 = none")
                  .rare()
                  .between(-1, 1024)
                  .restart(),
              row<&Threads::idle_timeout>("idle_timeout", "idle time after which a thread may end; 0s = never")
                  .rare()
                  .restart(),
              row<&Threads::max_evict_count>("max_evict_count", "threads that may end per idle_timeout")
                  .rare()
                  .between(1, 10'000)
                  .restart(),
              row<&Threads::stack_size>("stack_size", "stack size of each thread")
                  .rare()
                  .between(65'536, 1 << 30)
                  .restart(),
              row<&Threads::max_tasks>("max_tasks", "blocking tasks that may exist at once; further ones are rejected")
                  .rare()
                  .between(1, kMaxConnections)
                  .restart(),
              row<&Threads::inline_handshakes>(
                  "inline_handshakes",
                  "TLS handshakes per second that a loop executes itself; others, and those that sign, run as tasks")
                  .rare()
                  .between(0, kMaxConnections)
                  .restart(),
          },
          [](Config& config) -> void* { return &config.threads; },
          nullptr,
          &defaults<Threads>()};
}

Section log_section() {
  return {"log",
          "log lines on stderr, in files or to syslog",
          false,
          {
              row<&Log::level>("level", "lowest level that is logged"),
              row<&Log::format>("format", "line format").restart(),
              row<&Log::file>("file", "file for the lines instead of stderr; SIGUSR1 reopens it")
                  .format(kWritableFile, R"("/var/log/carpool/carpool.log")")
                  .restart(),
              row<&Log::syslog>("syslog", "socket of a syslog daemon for the lines instead of stderr")
                  .format(kUnixAddress, R"("unix:/dev/log")")
                  .restart(),
              row<&Log::access>("access", "log a line for every request"),
              row<&Log::access_format>("access_format",
                                       "format of access log lines; same: as `format`; combined: as Apache and nginx")
                  .restart(),
              row<&Log::access_file>("access_file", "file for access log lines alone; SIGUSR1 reopens it")
                  .format(kWritableFile, R"("/var/log/carpool/access.log")")
                  .restart(),
              row<&Log::access_sample>("access_sample",
                                       "log one in this many successful requests; refused, failed and retried ones "
                                       "and 5xx are always logged")
                  .between(1, 1'000'000),
              row<&Log::sync>("sync",
                              "maximum delay until lines of a log file are on disk; 0s = left to the operating system")
                  .rare()
                  .restart(),
          },
          [](Config& config) -> void* { return &config.log; },
          nullptr,
          &defaults<Log>()};
}

}  // namespace carpool::proxy::config
