#include "proxy/server/worker.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "pool/destination/destination.h"
#include "proxy/net/dns/known_names.h"
#include "proxy/net/egress_policy.h"
#include "proxy/server/executors.h"
#include "proxy/telemetry/span_buffer.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/connection_events.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/limit_sessions.h"
#include "proxy/upstream/loop_buffers.h"
#include "proxy/upstream/retire_outdated.h"

namespace carpool::proxy {

namespace {
// The worker whose loop this thread runs. Set around all code that runs on a loop, never kept across threads.
thread_local Worker* current_worker = nullptr;

// Returns a name for thread dumps, which lives as long as the process.
const char* name_of(LoopId id) {
  static const auto names = [] {
    std::array<std::string, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = "loop " + std::to_string(i);
    return all;
  }();
  return names[id].c_str();
}

log::Format format_of(const config::Log& settings) {
  switch (settings.access_format) {
    case config::AccessFormat::json:
      return log::Format::json;
    case config::AccessFormat::text:
      return log::Format::text;
    case config::AccessFormat::combined:
      return log::Format::combined;
    case config::AccessFormat::same:
      break;
  }
  return settings.format == config::LogFormat::text ? log::Format::text : log::Format::json;
}

dns::Settings dns_settings(const config::Dns& dns, dns::Events& events) {
  dns::Settings settings;
  settings.events = &events;
  settings.known = &dns::KnownNames::process();
  settings.min_ttl = dns.min_ttl;
  settings.max_ttl = dns.max_ttl;
  settings.negative_ttl = dns.negative_ttl;
  settings.stale_for = dns.stale_for;
  return settings;
}
}  // namespace

namespace {
// Half of the tasks that may exist are for handshakes of clients, divided equally among the loops.
ClientList::Handshakes handshakes_of(const config::Config& config, exec::Submitter& tasks) {
  return {&tasks, config.threads.inline_handshakes, std::max(1U, config.threads.max_tasks / 2 / config.workers)};
}
}  // namespace

Result<std::unique_ptr<Worker>> Worker::make(const WorkerParts& parts, LoopId id) {
  Result<std::unique_ptr<exec::UvLoop>> loop = exec::UvLoop::make(id);
  if (!loop) return loop.take_fault();
  auto spans = std::make_unique<SpanBuffer>(id, parts.metrics, parts.config.otlp);
  return std::unique_ptr<Worker>(new Worker(parts, std::move(*loop), std::move(spans)));
}

Worker::Worker(const WorkerParts& all, std::unique_ptr<exec::UvLoop> loop, std::unique_ptr<SpanBuffer> spans)
    : parts{*loop, clients_, exchanges_, context_, dialer_, stats_, streams_, inbox_, *spans},
      loop_(std::move(loop)),
      driver_(all.executors.make_driver(*loop_, *this, name_of(loop_->id()))),
      origins_(all.origins),
      stats_(all.metrics, format_of(all.config.log), *loop_),
      inbox_(*loop_),
      spans_(std::move(spans)),
      dns_stats_(stats_, *loop_),
      resolver_(*loop_, dns_settings(all.config.dns, dns_stats_)),
      router_(all.origins, all.policy),
      streams_(*loop_, stats_, all.h2_contexts),
      upstream_{.loop = *loop_,
                .tasks = *driver_,
                .sessions = streams_,
                .stats = stats_,
                .origins = all.origins,
                .policy = all.policy,
                .warm_up = all.warm_up,
                .inline_handshakes = all.config.threads.inline_handshakes,
                .pseudonym = all.pseudonym,
                .first = loop_->id() == 0},
      dialer_(upstream_, resolver_),
      health_check_(upstream_),
      address_monitor_(upstream_, resolver_),
      exchanges_(context_),
      context_(exchange_context(all)),
      leak_detector_(*loop_, exchanges_, all.origins, all.leaks),
      clients_(context_, all.owner, handshakes_of(all.config, *driver_), &all.intercepts) {
  loop_->set_shared_watcher(this);
}

// Refers to members that are constructed later.
ExchangeContext Worker::exchange_context(const WorkerParts& all) {
  return {.loop = *loop_,
          .buffers = streams_.buffers(),
          .cross_loop_streams = streams_,
          .exchanges = exchanges_,
          .router = router_,
          .origins = all.origins,
          .dialer = dialer_,
          .stats = stats_,
          .leaks = all.leaks,
          .overload = all.overload,
          .wall_clock = std::chrono::system_clock::now,
          .pseudonym = all.pseudonym,
          .processes = &all.processes,
          .tasks = driver_.get(),
          .spans = spans_.get()};
}

Worker::~Worker() {
  driver_.reset();
}

Worker& Worker::current() {
  CARPOOL_ASSERT(current_worker != nullptr);
  return *current_worker;
}

void Worker::enter() {
  current_worker = this;
}
void Worker::leave() {
  current_worker = nullptr;
}

bool Worker::start() {
  enter();  // no thread runs the loop yet
  health_check_.start();
  address_monitor_.start();
  leak_detector_.start();
  leave();
  return driver_->start();
}

void Worker::on_reload(const config::Dns& dns, const config::Otlp& otlp, const std::vector<const Listener*>& closed) {
  router_.forget();
  spans_->follow(otlp);
  resolver_.set_ttls(dns.min_ttl, dns.max_ttl, dns.stale_for, dns.negative_ttl);
  clients_.drain_those_of(closed);
  clients_.drain_replaced_interceptions();
  for (const OriginRuntime* origin : origins_.all()) limit_sessions(*origin, loop_->id(), loop_->now());
}

void Worker::retire_outdated_of(const std::vector<const TlsIdentity*>& renewed) {
  for (const OriginRuntime* origin : origins_.outdated(renewed)) {
    retire_outdated(*origin->destination, loop_->id(), loop_->now());
  }
}

std::vector<pool::Destination*> Worker::forget(const std::vector<pool::Destination*>& leaving) {
  router_.forget();
  inbox_.forget(leaving);
  health_check_.forget(leaving);
  address_monitor_.forget(leaving);
  std::vector<pool::Destination*> in_use;
  exchanges_.for_each([&](const Exchange& exchange) {
    exec::assume_on_loop();
    const OriginRuntime* origin = exchange.info().origin;
    if (exchange.state() == ExchangeState::idle || origin == nullptr) return;
    if (std::binary_search(leaving.begin(), leaving.end(), origin->destination, std::less<>()))
      in_use.push_back(origin->destination);
  });
  return in_use;
}

void Worker::tear_down() {
  enter();
  clients_.close_all();
  health_check_.stop();
  address_monitor_.stop();
  dialer_.stop_waiting();
  loop_->drain();
  dialer_.cancel_all();
  loop_->drain();
  clients_.close_all();
  leave();
}

// ---- readiness of pooled connections ----

void Worker::on_shared_ready(std::uint32_t index, std::uint32_t generation, exec::Ready ready) {
  const pool::EventClaim claim = pool::claim_event(index, generation, loop_->id());
  if (claim.kind == pool::EventClaim::Kind::stale) return;
  if (claim.kind == pool::EventClaim::Kind::session) {
    return static_cast<H2Connection&>(*claim.pooled).on_ready(ready);
  }
  auto& connection = static_cast<Connection&>(*claim.pooled);
  connection.transport().on_readiness(ready);
  if (claim.kind == pool::EventClaim::Kind::in_use) {
    if (connection.events != nullptr) connection.events->on_upstream_ready();
    return;
  }
  // The connection is idle and this loop won the entry, so only TLS control records are expected.
  net::Transport& transport = connection.transport();
  if (!transport.hangup_seen() && transport.no_data_pending()) return pool::keep_inspected(index, loop_->now());
  const auto cause = transport.flooded() ? pool::CloseCause::error : pool::CloseCause::peer_closed;
  const auto how = transport.ended_in_order() ? pool::OriginClose::in_order : pool::OriginClose::abrupt;
  pool::close_inspected(index, cause, loop_->now(), how);
}

}  // namespace carpool::proxy
