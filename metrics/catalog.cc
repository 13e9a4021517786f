#include "metrics/catalog.h"

#include <array>

#include "metrics/metric_sources.h"

namespace carpool::metrics {
namespace sources {
namespace {
using enum Type;

constexpr auto kCatalog = std::to_array<CatalogEntry>({
    // ---- the pool, per origin ----
    {{"carpool_pool_borrows_total", counter, "origin", "Leases given to requests."}, number<&OriginSample::borrows>},
    {{"carpool_pool_restores_total", counter, "origin",
      "Leases that ended, by release or discard; borrows - restores = current leases."},
     number<&OriginSample::restores>},
    {{"carpool_pool_opened_total", counter, "origin,cause", "Dials started, by the cause of the connection."},
     parts<&OriginSample::opened, kNone>},
    {{"carpool_pool_closed_total", counter, "origin,cause", "Connections closed and dials failed, by cause."},
     parts<&OriginSample::closed, kNone>},
    {{"carpool_pool_failures_total", counter, "origin,reason",
      "Dials and exchanges that failed, by reason (dns, refused, timeout, tls, reset, protocol, budget)."},
     parts<&OriginSample::failures, kNone>},
    {{"carpool_pool_connections", gauge, "origin,state",
      "Connections by state; their sum is opened - closed at every scrape."},
     parts<&OriginSample::connections, kHeldStates>},
    {{"carpool_pool_connections_peak", gauge, "origin", "Highest number of connections since the pool was created."},
     number<&OriginSample::peak>},
    {{"carpool_pool_connection_age_seconds", distribution, "origin",
      "Ages of the connections that exist at the moment (no rate()); only for origins that have had several at once."},
     connection_times<&OriginSample::ages>},
    {{"carpool_pool_connection_idle_seconds", distribution, "origin",
      "Idle times of the connections that are idle at the moment (no rate()); only for origins that have had several "
      "at once."},
     connection_times<&OriginSample::idle_times>},
    {{"carpool_pool_leases", gauge, "origin",
      "Requests and tunnels in flight, each on a connection or a stream (borrows - restores)."},
     leases},
    {{"carpool_pool_size", gauge, "origin", "Maximum number of connections (pool.size)."}, number<&OriginSample::size>},
    {{"carpool_pool_size_changes_total", counter, "origin,reason",
      "Changes of a size that follows the load (pool.size = \"auto\"), by reason."},
     parts<&OriginSample::size_changes, kNone>},
    {{"carpool_pool_waiting", gauge, "origin", "Requests waiting for a connection."}, number<&OriginSample::waiting>},
    {{"carpool_pool_longest_wait_seconds", gauge, "origin", "Time that the longest waiting request has waited."},
     longest_wait},
    {{"carpool_pool_class_waiting", gauge, "origin,class",
      "Requests of a priority class waiting for a connection (pool.classes)."},
     classes<&ClassSample::waiting>},
    {{"carpool_pool_class_leases", gauge, "origin,class", "Leases that a priority class holds."},
     classes<&ClassSample::leases>},
    {{"carpool_pool_class_limit", gauge, "origin,class",
      "Maximum number of leases of a priority class and those below it together."},
     classes<&ClassSample::limit>},
    {{"carpool_pool_class_share", gauge, "origin,class",
      "The former name of carpool_pool_class_limit; the next release omits it."},
     classes<&ClassSample::limit>},
    {{"carpool_pool_probing", gauge, "origin",
      "1 while the last dial has failed: requests wait for the result of a probe."},
     rare<&OriginSample::probing>},
    {{"carpool_pool_paused", gauge, "origin", "1 while an operator has paused or drained the origin: requests wait."},
     rare<&OriginSample::paused>},
    {{"carpool_pool_cooling_down", gauge, "origin",
      "1 while requests wait because the origin answered 429 or 503 with Retry-After (pool.cool_down)."},
     rare<&OriginSample::cooling_down>},
    {{"carpool_pool_cool_downs_total", counter, "origin",
      "Pauses that the origin asked for with Retry-After, renewed ones included."},
     rare<&OriginSample::cool_downs>},
    {{"carpool_pool_undialed_total", counter, "origin",
      "Requests that failed with the error of the last dial, without a dial of their own."},
     rare<&OriginSample::undialed>},
    {{"carpool_pool_origins", gauge, "", "Number of pools, one for each origin in use."}, total<&Sample::pools>},
    {{"carpool_pool_origins_max", gauge, "", "Maximum number of pools (pool.total.max_origins)."},
     total<&Sample::pools_max>},
    {{"carpool_pool_reclaimed_total", counter, "",
      "Pools that were removed after pool.total.origin_idle_timeout without use, or replaced by a reload; the counts "
      "of the former continue in origin=\"other\"."},
     total<&Sample::pools_reclaimed>},
    {{"carpool_pool_evicted_total", counter, "",
      "Removed pools that ended because another origin needed their place (pool.total.max_origins)."},
     total<&Sample::pools_evicted>},
    {{"carpool_pool_starved_origins", gauge, "",
      "Pools that wait for a connection slot of another pool (pool.total.max_connections)."},
     total<&Sample::pools_starved>},
    {{"carpool_pool_wait_seconds", histogram, "origin", "Time that requests waited for a connection."},
     histogram_of<&OriginShard::wait>},
    {{"carpool_pool_leaks_total", counter, "origin",
      "Leases that were destroyed without release or discard, or held longer than leak_timeout."},
     number<&OriginSample::leaks>},
    {{"carpool_untracked_connections", gauge, "", "Connections to origins that are in no pool: a defect of carpool."},
     total<&Sample::untracked>},
    {{"carpool_origin_addresses", gauge, "origin,state",
      "Addresses of an origin by state: usable, ejected (they keep failing), gone (no "
      "longer in DNS, but with open connections)."},
     parts<&OriginSample::addresses, kUsable>},
    {{"carpool_address_connections", gauge, "origin,address",
      "Connections to each address of an origin that has several; at most 16 addresses of an origin."},
     addresses<&AddressSample::connections>},
    {{"carpool_address_leases", gauge, "origin,address",
      "Requests in progress on each address of an origin that has several."},
     addresses<&AddressSample::leases>},
    {{"carpool_address_requests_total", counter, "origin,address",
      "Requests sent to each address of an origin that has several."},
     addresses<&AddressSample::requests>},
    {{"carpool_address_response_seconds", gauge, "origin,address",
      "Moving average of the time to the response of each address of an origin that has several."},
     response_times},
    {{"carpool_origin_ejections_total", counter, "origin", "Ejections of addresses that kept failing."},
     cell<&OriginShard::ejections>},
    {{"carpool_saved_dials_total", counter, "origin",
      "Requests on reused connections: the dials and TLS handshakes that reuse saved."},
     cell<&OriginShard::saved_dials>},
    {{"carpool_saved_seconds_total", counter, "origin",
      "Time that these requests would have waited for dials (DNS, TCP, TLS), estimated "
      "from recent dials to this origin."},
     seconds<&OriginShard::saved_nanoseconds>},
    {{"carpool_saved_cpu_seconds_total", counter, "origin",
      "CPU time of the TLS handshakes that reuse saved, estimated from recent handshakes."},
     seconds<&OriginShard::saved_cpu_nanoseconds>},
    // ---- requests ----
    {{"carpool_requests_total", counter, "origin,method,code",
      "Requests answered; code 499: the client left before the response head."},
     requests},
    {{"carpool_request_seconds", histogram, "origin", "Time from a request's head to its response's last byte."},
     histogram_of<&OriginShard::request>},
    {{"carpool_retries_total", counter, "origin,proof", "Retries, by the proof that they were safe."},
     cells<&OriginShard::retries, kRetryReasons>},
    {{"carpool_retries_denied_total", counter, "origin", "Retries denied because request.retry_budget was used up."},
     cell<&OriginShard::retries_denied>},
    {{"carpool_hedged_attempts_total", counter, "origin,result",
      "Hedged attempts (request.hedge), by result: won (the client got their response), lost (the client got that of "
      "the late attempt, or left), failed (no connection, or no usable response)."},
     cells<&OriginShard::hedges, kHedges>},
    {{"carpool_upstream_bounds_total", counter, "origin,bound",
      "Requests ended by a limit: informational (more or larger 1xx heads than a response "
      "may have), attempts (request.max_retries + 8 attempts)."},
     cells<&OriginShard::bounds, kUpstreamBounds>},
    {{"carpool_rate_limited_total", counter, "origin,limit",
      "Requests answered with 429 by request.rate; dials delayed or rejected by pool.connect_rate."},
     cells<&OriginShard::limited, kLimits>},
    {{"carpool_downstream_connections", gauge, "", "Open client connections."}, clients},
    {{"carpool_downstream_given_up_total", counter, "reason",
      "Requests cancelled because of their client (half_close: it sent FIN and the response did not begin within "
      "listen.half_close; slow_body: the body arrived more slowly than listen.body_min_rate; slow_reader: it accepted "
      "the response more slowly than that while a request waited for the connection; unread: it accepted no byte of "
      "the "
      "response or of the tunnel for request.idle_timeout)."},
     events<GivenUp, kGivenUps>},
    {{"carpool_downstream_limits_total", counter, "limit",
      "Limits that stopped a client without a response (connections: a listener had listen.max_connections clients and "
      "stopped accepting until one left; streams: a stream beyond the 250 that an HTTP/2 connection may have at once "
      "was "
      "refused)."},
     events<ClientLimit, kClientLimits>},
    {{"carpool_downstream_h2_abuse_total", counter, "kind",
      "HTTP/2 connections of clients closed for abuse, by kind (resets, control, "
      "continuations, header_list, memory, unread)."},
     counts<&Registry::abuse_count, kAbuses>},
    {{"carpool_downstream_handshakes_total", counter, "result",
      "TLS handshakes of clients, by result: full, resumed, failed, timeout "
      "(listen.header_timeout) or rejected (more than "
      "threads.max_tasks)."},
     events<ClientHandshake, kClientHandshakes>},
    {{"carpool_tls_floods_total", counter, "peer",
      "Connections ended because the peer (client, origin) sent more than 32 TLS "
      "messages without data in between (KeyUpdate, for example)."},
     counts<&Registry::tls_flood_count, kTlsPeers>},
    {{"carpool_parent_proxy_refusals_total", counter, "reason",
      "Responses of upstream.proxy that refused a request: credentials (407), "
      "forbidden (another 4xx), unavailable (5xx), "
      "other, unanswered (it closed the connection)."},
     events<ParentRefusal, kParentRefusals>},
    {{"carpool_downstream_proxy_headers_total", counter, "result",
      "Connections to listeners with proxy_protocol: named (the header has the client's address), local (the peer is "
      "the "
      "client), or closed: untrusted (listen.trusted does not name the peer), malformed, missing (none within "
      "listen.header_timeout)."},
     events<ProxyHeader, kProxyHeaders>},
    {{"carpool_downstream_authentications_total", counter, "result",
      "Requests on listeners with a credentials_file, by result: accepted, or answered with 407: missing (no "
      "Proxy-Authorization), malformed, rejected (no user has these credentials)."},
     events<Authentication, kAuthentications>},
    {{"carpool_requests_refused_total", counter, "origin",
      "Requests refused because no rule of the origin (allow) matches them."},
     cell<&OriginShard::refused>},
    {{"carpool_credential_files_total", counter, "result",
      "Changes of files with credentials of origins, by result: renewed, or failed (the last good value stays)."},
     counts<&Registry::credential_file_count, kCredentialFiles>},
    {{"carpool_credential_files_stale", gauge, "",
      "Files with credentials of origins that cannot be used at the moment."},
     stale_credentials},
    {{"carpool_oauth2_token_requests_total", counter, "origin,result",
      "Requests for a token of the origin, by result: granted, refused (the endpoint answered with an error), unusable "
      "(the response contains no token), timeout (oauth2.timeout) or failed (the endpoint was not reached)."},
     cells<&OriginShard::token_requests, kTokenRequests>},
    {{"carpool_otlp_spans_total", counter, "result",
      "Spans of carpool's own (otlp.traces), by result: exported, rejected (by the collector, which accepted others of "
      "the "
      "same request), refused (the status permits no other attempt), given_up (every attempt failed), buffer_full "
      "(otlp.buffer)."},
     events<OtlpSpan, kOtlpSpans>},
    {{"carpool_otlp_requests_total", counter, "signal,result",
      "Requests to otlp.endpoint, by what they carry (traces, metrics) and by result: accepted, refused (a status that "
      "permits no other "
      "attempt), unavailable (429, 502, 503, 504), unusable (200 with a body that is not an OTLP response), timeout "
      "(otlp.timeout), "
      "failed (the collector was not reached, or its response is incomplete)."},
     otlp_requests},
    {{"carpool_intercept_connects_total", counter, "origin,result",
      "CONNECTs to origins with intercept = true, by result: intercepted, refused (the client does not accept the "
      "certificate), failed (another fault of its TLS handshake), or the reason why it stayed a tunnel: not_tls, alpn "
      "(neither h2 nor http/1.1 is offered), no_common_tls (no version, cipher suite, signature or group of carpool is "
      "offered), distrusted (refused before), early (bytes before the response), in_tls "
      "(the "
      "client uses TLS to the listener), in_h2 (sent in a stream of HTTP/2), no_leaf (no certificate could be "
      "made)."},
     cells<&OriginShard::intercepts, kIntercepts>},
    {{"carpool_intercept_refusals_total", counter, "origin,offer,alert",
      "Clients that refused the certificate of an intercepted origin, by what their TLS offers (tls13 or tls12, with "
      "h2, "
      "h1 or no ALPN) and by alert: unknown_ca, bad_certificate, certificate_unknown, other, or none (two connections "
      "in "
      "a row ended without an alert and without a request)."},
     intercept_refusals},
    {{"carpool_intercept_leaves", gauge, "", "Valid certificates of intercepted origins that are kept in memory."},
     number_of<&Sample::intercept, &InterceptSample::leaves>},
    {{"carpool_intercept_leaves_minted_total", counter, "result",
      "Certificates of intercepted origins made since the start, by result (minted, failed)."},
     intercept_minted},
    {{"carpool_intercept_authority_expiry_seconds", gauge, "",
      "Time until the authority of intercepted origins expires; absent while no origin is intercepted."},
     intercept_expiry},
    {{"carpool_upstream_handshake_seconds", histogram, "origin", "Duration of TLS handshakes with origins."},
     histogram_of<&OriginShard::handshake>},
    {{"carpool_upstream_h2_resets_total", counter, "origin,code",
      "HTTP/2 requests to origins whose stream was reset, by error code."},
     cells<&OriginShard::resets, kResets>},
    {{"carpool_egress_decisions_total", counter, "decision",
      "Requests by the decision of the egress rules (allowed, denied, or reported: allowed in report_only mode only)."},
     events<Egress, kEgress>},
    {{"carpool_dns_events_total", counter, "event",
      "Lookups repeated over TCP (over_tcp) or because no name server was reached (asked_again); addresses of a name "
      "beyond the first 256 (addresses_left_out); changes of resolv.conf (resolv_conf_changed)."},
     counts<&Registry::dns_count, kDns>},
    // ---- execution ----
    {{"carpool_exec_tasks_total", counter, "mode",
      "Tasks executed, by mode: pc and pic on the thread that produced them (pic: no thread was "
      "free), pec on another thread, epc after handing the loop over."},
     parts_of<&Sample::exec, &ExecSample::tasks>},
    {{"carpool_exec_handovers_total", counter, "result", "Attempts to hand a loop to a reserved thread, by result."},
     parts_of<&Sample::exec, &ExecSample::handovers>},
    {{"carpool_exec_handovers_paused_total", counter, "",
      "Hand-overs not attempted because earlier ones were late; the task was "
      "queued."},
     number_of<&Sample::exec, &ExecSample::handovers_paused>},
    {{"carpool_exec_threads", gauge, "state", "Threads of the pool by state."},
     parts_of<&Sample::exec, &ExecSample::threads>},
    {{"carpool_exec_threads_max", gauge, "", "Maximum number of threads (threads.max)."},
     number_of<&Sample::exec, &ExecSample::threads_max>},
    {{"carpool_exec_low_on_threads", gauge, "", "1 while no thread is idle and no more may be started."},
     number_of<&Sample::exec, &ExecSample::low_on_threads>},
    {{"carpool_exec_refused_total", counter, "", "Tasks that were refused because threads.max_tasks of them existed."},
     number_of<&Sample::exec, &ExecSample::refused>},
    {{"carpool_exec_queue", gauge, "", "Tasks waiting for a thread."}, number_of<&Sample::exec, &ExecSample::queue>},
    {{"carpool_exec_queue_wait_seconds", histogram, "", "Time that tasks waited for a thread."}, queue_wait},
    {{"carpool_loop_turn_seconds", histogram, "",
      "Duration of the turns of the workers' loops, from the end of a wait for events to "
      "the next one: what becomes ready meanwhile waits."},
     loop_times<&LoopSample::turns>},
    {{"carpool_loop_delay_seconds", histogram, "",
      "How late the workers' loops ran due timers. A delay without long turns is time "
      "that the loop's thread waited for a processor; up to 1 ms is the resolution of "
      "the wait."},
     loop_times<&LoopSample::delays>},
    {{"carpool_loop_busy_seconds_total", counter, "loop", "Time that a worker's loop did not wait for events."},
     loop_busy},
    // ---- carpool webhook ----
    {{"carpool_webhook_reviews_total", counter, "outcome",
      "Reviews answered, by outcome (injected, untouched, refused, malformed)."},
     sample_parts<&Sample::reviews>},
    {{"carpool_webhook_shed_total", counter, "what",
      "Connections to the webhook closed to make room for another: during their TLS "
      "handshake (handshake), the one idle for longest (idle), or the one whose request has been incomplete for "
      "longest, if all bodies together exceed 12 MiB (body)."},
     sample_parts<&Sample::webhook_shed>},
    {{"carpool_webhook_limits_total", counter, "limit",
      "Reviews over a limit: body (100,000 values, 64 levels), overlay (an annotation of 256 KiB)."},
     sample_parts<&Sample::webhook_limits>},
    // ---- the process ----
    {{"carpool_overload_stage", gauge, "",
      "Load shedding stage: 0 none, 1 keep-alive, 2 also new clients, 3 also idle connections."},
     number_of<&Sample::overload, &OverloadSample::stage>},
    {{"carpool_overload_used_ratio", gauge, "resource",
      "Used share of the limit of a resource (memory, descriptors); 0: no limit."},
     overload_used},
    {{"carpool_overload_shed_total", counter, "what",
      "Clients refused (new_clients), idle connections closed (idle) and pauses of a "
      "listener for lack of descriptors (accepts)."},
     events<Shed, kSheds>},
    {{"carpool_overload_failed_allocations_total", counter, "",
      "Allocations that failed and were served from the reserve."},
     number_of<&Sample::overload, &OverloadSample::failed_allocations>},
    {{"carpool_memory_returned_bytes_total", counter, "", "Unused memory returned to the kernel, in bytes."},
     number_of<&Sample::overload, &OverloadSample::memory_returned>},
    {{"carpool_reloads_total", counter, "result", "Reloads of the configuration, by result (applied, refused)."},
     reloads},
    {{"carpool_certificate_end_timestamp_seconds", gauge, "use,file",
      "Expiry time of the certificate in a file, as Unix time, by its use: listener (to clients), admin (to clients of "
      "the admin endpoint), client (to origins), authority (of intercepted origins), webhook (to the API server)."},
     certificate_ends},
    {{"carpool_reload_limits_total", counter, "limit",
      "Reloads whose configuration exceeds a limit: file (16 MiB), depth (of tables and lists), variables (64 KiB for "
      "an "
      "expanded value), mistakes (100 are reported)."},
     parts_of<&Sample::admin, &AdminSample::reload_limits>},
    {{"carpool_admin_connections", gauge, "", "Connections to the admin endpoint, listeners of /events included."},
     number_of<&Sample::admin, &AdminSample::connections>},
    {{"carpool_admin_event_listeners", gauge, "", "Clients that listen to /events, at most 16."},
     number_of<&Sample::admin, &AdminSample::event_listeners>},
    {{"carpool_admin_event_renderings_total", counter, "",
      "Renderings of the state for /events: at most one per second for all clients that listen."},
     number_of<&Sample::admin, &AdminSample::event_renderings>},
    {{"carpool_admin_shed_total", counter, "door,what",
      "Connections to the admin endpoint (door admin) or to [metrics] address (door metrics) closed to make room for "
      "another (idle), and requests answered with 503 because too many responses are being produced (busy)."},
     admin_shed},
    {{"carpool_admin_abuse_total", counter, "door,kind",
      "HTTP/2 connections to the admin endpoint (door admin) or to [metrics] address "
      "(door metrics) ended for abuse by the client, by kind, as carpool_downstream_h2_abuse_total."},
     admin_abuse},
    {{"carpool_admin_handshakes_total", counter, "result",
      "TLS handshakes of clients of the admin endpoint, by result as "
      "carpool_downstream_handshakes_total."},
     parts_of<&Sample::admin, &AdminSample::handshakes>},
    {{"carpool_log_dropped_total", counter, "",
      "Log lines that were not written because the queue was full or the write failed."},
     total<&Sample::log_dropped>},
    {{"carpool_build_info", gauge, "version,compiler,build", "A constant 1."}, build},
    {{"process_cpu_seconds_total", counter, "", "User and system CPU time."},
     number_of<&Sample::process, &ProcessSample::cpu_seconds>},
    {{"process_resident_memory_bytes", gauge, "", "Resident memory."},
     number_of<&Sample::process, &ProcessSample::resident_bytes>},
    {{"process_virtual_memory_bytes", gauge, "", "Virtual memory."},
     number_of<&Sample::process, &ProcessSample::virtual_bytes>},
    {{"process_open_fds", gauge, "", "Open file descriptors."}, number_of<&Sample::process, &ProcessSample::open_fds>},
    {{"process_max_fds", gauge, "", "Maximum number of open file descriptors."},
     number_of<&Sample::process, &ProcessSample::max_fds>},
    {{"process_start_time_seconds", gauge, "", "Start time since the Unix epoch."},
     number_of<&Sample::process, &ProcessSample::start_time_seconds>},
});
}  // namespace
}  // namespace sources

std::span<const CatalogEntry> catalog() {
  return sources::kCatalog;
}

}  // namespace carpool::metrics
