// The settings of the program itself: workers, listeners, admin, metrics, threads, log.
#include "proxy/config/row.h"

namespace carpool::proxy::config {
namespace {

constexpr std::int64_t kMaxHead = 16 << 20;

}  // namespace

Section top_section() {
  return {"",
          "the program as a whole",
          false,
          {
              row<&Config::workers>("workers", R"(event loops; "auto" = the cores that the cgroup grants)")
                  .between(1, 128)
                  .takes_auto()
                  .restart(),
              row<&Config::shutdown_grace>(
                  "shutdown_grace", "how long running exchanges may take to finish on TERM; below Kubernetes' 30 s"),
              row<&Config::drain_delay>("drain_delay",
                                        "on TERM, how long to go on accepting while /readyz already says 503"),
          },
          [](Config& config) -> void* { return &config; },
          nullptr,
          &kDefaults<Config>};
}

Section listen_section() {
  return {
      "listen",
      "where applications connect; repeat it for more listeners",
      true,
      {
          row<&Listen::address>("address", R"(also "[::1]:3128", "unix:/run/carpool/proxy.sock"; port 0 = any)")
              .looks_like(kListenAddress),
          row<&Listen::origin>("origin", "every request of this listener goes there, whatever Host says")
              .looks_like(kHttpOrigin, R"("https://api.example.com")"),
          row<&Listen::route_by_host>("route_by_host", "`GET /x` with `Host: a` goes to http://a"),
          row<&Listen::connect>("connect", "take CONNECT"),
          row<&Listen::connect_ports>("connect_ports",
                                      "ports that CONNECT may ask for; default: any on loopback and Unix "
                                      "sockets, 443 elsewhere")
              .between(1, 65535)
              .shown_as("[443]"),
          row<&Listen::open>("open", "allow an address that is not loopback without further conditions"),
          row<&Listen::preserve_host>("preserve_host", "with `origin`: keep the request's Host"),
          row<&Listen::idle_timeout>("idle_timeout", "a client without a request is closed after it").at_least(1),
          row<&Listen::header_timeout>("header_timeout", "first byte of a request to the end of its head").at_least(1),
          row<&Listen::max_connections>("max_connections", "clients at once").between(1, kMaxConnections),
          row<&Listen::max_header_bytes>("max_header_bytes", "of a request's head; more is 431")
              .between(1024, kMaxHead),
          row<&Listen::max_headers>("max_headers", "fields of a request; more is 431").between(1, 10'000),
          row<&Listen::max_target>("max_target", "of a request's target; more is 414").between(64, kMaxHead),
          row<&Listen::max_body>("max_body", "of a request's body; more is 413; 0 = no limit"),
          row<&Listen::class_name>("class", "priority class of its requests, see pool.classes; default: their Priority")
              .looks_like(kClassName, R"("high")"),
      },
      nullptr,
      nullptr,
      &kDefaults<Listen>};
}

Section admin_section() {
  return {"admin",
          "the page, the JSON and the metrics for those who run it",
          false,
          {
              row<&Admin::address>("address", R"(or "unix:/run/carpool/admin.sock" (mode 0600, same uid or root))")
                  .looks_like(kListenAddress)
                  .restart(),
              row<&Admin::enabled>("enabled", "false: no admin listener").restart(),
              row<&Admin::token_file>("token_file", "bearer token; demanded where the address is not loopback")
                  .looks_like(kReadableFile, R"("/etc/carpool/admin.token")"),
          },
          [](Config& config) -> void* { return &config.admin; },
          nullptr,
          &kDefaults<Admin>};
}

Section metrics_section() {
  return {"metrics",
          "Prometheus and SimplePool's counters",
          false,
          {
              row<&Metrics::enabled>("enabled", "false: /metrics and /pool/metrics answer 503"),
              row<&Metrics::address>("address", "a listener with /metrics, /livez, /readyz and nothing else")
                  .looks_like(kListenAddress, R"("0.0.0.0:9902")")
                  .restart(),
              row<&Metrics::max_origins>("max_origins", R"(label cardinality; the rest share origin="other")")
                  .between(1, 100'000)
                  .restart(),
              row<&Metrics::summary_interval>("summary_interval", "one log line that sums up; 0s = off").restart(),
          },
          [](Config& config) -> void* { return &config.metrics; },
          nullptr,
          &kDefaults<Metrics>};
}

Section handover_section() {
  return {"handover",
          "an upgrade without a gap: a process that starts takes the sockets over from the one that runs",
          false,
          {
              row<&Handover::address>("address", "where the one that runs gives them away (same user, or root)")
                  .looks_like(kUnixAddress, R"("unix:/run/carpool/handover.sock")")
                  .restart(),
              row<&Handover::warm_rate>("warm_rate", "connections a second that the new one opens ahead")
                  .between(1, 100'000)
                  .restart(),
          },
          [](Config& config) -> void* { return &config.handover; },
          nullptr,
          &kDefaults<Handover>};
}

Section overload_section() {
  return {
      "overload",
      "what is shed, in this order, when memory or file descriptors run short; percent of what may be used, 0 = never",
      false,
      {
          row<&Overload::memory_limit>("memory_limit", R"("0" = what the cgroup grants)"),
          row<&Overload::stop_keep_alive>("stop_keep_alive", "answers end their client's connection").between(0, 100),
          row<&Overload::refuse_clients>("refuse_clients", "clients who come are answered 503 with Retry-After")
              .between(0, 100),
          row<&Overload::close_idle>("close_idle", "idle connections of clients and to origins are closed")
              .between(0, 100),
      },
      [](Config& config) -> void* { return &config.overload; },
      nullptr,
      &kDefaults<Overload>};
}

Section threads_section() {
  return {
      "threads",
      "the pool that adaptive execution draws on; loops and reserved threads come on top of max",
      false,
      {
          row<&Threads::strategy>("strategy", "who runs a task that may block").restart(),
          row<&Threads::min>("min", "threads kept").between(0, 10'000).restart(),
          row<&Threads::max>("max", "threads at most").between(1, 10'000).restart(),
          row<&Threads::reserved>("reserved", "ready to take a loop over; -1 = by the cores, 0 = none")
              .between(-1, 1024)
              .restart(),
          row<&Threads::idle_timeout>("idle_timeout", "rest of a thread before it may leave; 0s = it stays").restart(),
          row<&Threads::max_evict_count>("max_evict_count", "threads that may leave per idle_timeout")
              .between(1, 10'000)
              .restart(),
          row<&Threads::stack_size>("stack_size", "of each thread").between(65'536, 1 << 30).restart(),
          row<&Threads::max_tasks>("max_tasks",
                                   "blocking tasks that may exist at once; more are refused where they arise")
              .between(1, kMaxConnections)
              .restart(),
          row<&Threads::inline_handshakes>(
              "inline_handshakes", "TLS handshakes a second that a loop does itself; more, and signing ones, are tasks")
              .between(0, kMaxConnections)
              .restart(),
      },
      [](Config& config) -> void* { return &config.threads; },
      nullptr,
      &kDefaults<Threads>};
}

Section log_section() {
  return {
      "log",
      "to stderr",
      false,
      {
          row<&Log::level>("level", "what is worth a line"),
          row<&Log::format>("format", "of a line").restart(),
          row<&Log::access>("access", "a line for every request"),
          row<&Log::access_sample>("access_sample",
                                   "of requests that went well only one in so many; refused, failed, repeated ones "
                                   "and 5xx have theirs always")
              .between(1, 1'000'000),
          row<&Log::sync>("sync", "a log file's lines are on disk at most so long after; 0s = when the system likes")
              .restart(),
      },
      [](Config& config) -> void* { return &config.log; },
      nullptr,
      &kDefaults<Log>};
}

}  // namespace carpool::proxy::config
