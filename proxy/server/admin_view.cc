#include "proxy/server/admin_view.h"

#include <algorithm>
#include <array>
#include <map>

#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/config/in_force.h"
#include "proxy/config/options.h"
#include "proxy/config/print.h"
#include "proxy/config/read.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/server/admin/admin_server.h"
#include "proxy/server/admin/handlers/leaks.h"
#include "proxy/server/declared_origin.h"
#include "proxy/server/drain.h"
#include "proxy/server/executors.h"
#include "proxy/server/intercept_leaves.h"
#include "proxy/server/overload/heap_trim.h"
#include "proxy/server/overload/memory_reserve.h"
#include "proxy/server/reload/certificate_ends.h"
#include "proxy/server/reload/reloader.h"
#include "proxy/server/untracked_watch.h"
#include "proxy/server/worker.h"
#include "proxy/telemetry/leak_record.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/oauth_token.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/warm_up.h"

namespace carpool::proxy {

namespace {
class Collector final : public pool::ConnectionVisitor {
 public:
  void visit(const pool::ConnectionView& view) override {
    admin::ConnectionInfo info;
    info.state = view.state;
    info.opened = view.opened;
    info.age = view.age;
    info.idle = view.idle;
    info.uses = view.uses;
    info.streams = view.users;
    info.loop = view.home;
    info.protocol = "h1";
    if (view.pooled != nullptr) describe(static_cast<const Connection&>(*view.pooled), info);
    all.push_back(std::move(info));
  }
  std::vector<admin::ConnectionInfo> all;

 private:
  // Reads only what never changes in a connection: another loop may be using it.
  static void describe(const Connection& connection, admin::ConnectionInfo& info) {
    info.id = connection.id();
    info.local = connection.local();
    info.peer = connection.peer();
    info.protocol = connection.protocol() == pool::Protocol::h2 ? "h2" : "h1";
    info.tls_version = connection.security().version;
    info.cipher = connection.security().cipher;
  }
};

std::vector<metrics::Labelled> intercepts_of(const metrics::Registry& registry, const std::string& origin) {
  std::array<std::uint64_t, metrics::kIntercepts.size()> sums{};
  registry.visit_origin(registry.slot_of(origin), [&](const std::string&, const metrics::OriginShard& shard) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += shard.intercepts[i].read();
  });
  std::vector<metrics::Labelled> found;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != 0) found.push_back({metrics::kIntercepts[i], sums[i]});
  }
  return found;
}

// Returns the borrowers of `origin` by connection id. Only the loops know them.
std::map<std::uint64_t, std::string> borrowers(const Workers& workers, const std::string& origin) {
  constexpr Duration kTimeout = std::chrono::milliseconds(250);
  using Held = std::vector<BorrowerInfo>;
  const auto ask = [origin](Worker& worker) {
    exec::assume_on_loop();
    Held held;
    worker.parts.exchanges.for_each([&](const Exchange& exchange) {
      exec::assume_on_loop();
      if (!exchange.holds_lease() || exchange.info().origin->destination->label() != origin) return;
      held.push_back(exchange.describe_borrower());
    });
    return held;
  };
  std::map<std::uint64_t, std::string> all;
  for (const Held& held : exec::ask_loops<Held>(workers, kTimeout, ask)) {
    for (const BorrowerInfo& one : held) all.emplace(one.connection, admin::borrower_text(one));
  }
  return all;
}

// Per-origin counters of the loops, outside the pool.
struct Counts {
  admin::PoolInfo::Saved saved;
  admin::PoolInfo::Limited limited;
};
std::map<std::string, Counts> counts_by_origin(const metrics::Registry& registry) {
  std::map<std::string, Counts> all;
  registry.for_each_shard([&all](const std::string& label, const metrics::OriginShard& shard) {
    Counts& counts = all[label];
    counts.saved.dials += shard.saved_dials.read();
    counts.saved.time += std::chrono::nanoseconds(shard.saved_nanoseconds.read());
    counts.saved.cpu += std::chrono::nanoseconds(shard.saved_cpu_nanoseconds.read());
    counts.limited.requests += shard.limited[static_cast<std::size_t>(metrics::Limit::requests)].read();
    counts.limited.connections += shard.limited[static_cast<std::size_t>(metrics::Limit::connections)].read();
  });
  return all;
}
}  // namespace

admin::CountedPools ServerAdminView::counted() const {
  const pool::Directory& directory = parts_.origins.directory();
  const auto held = directory.hold();
  return {snapshots(),
          {directory.reclaimed(), directory.reclaimed_count(), directory.evicted_count(), directory.max_origins(),
           directory.starved(), parts_.untracked ? parts_.untracked->count() : 0}};
}

std::vector<admin::PoolInfo> ServerAdminView::pools() const {
  std::vector<admin::PoolInfo> all = snapshots();
  const std::map<std::string, Counts> counts = counts_by_origin(parts_.metrics);
  for (admin::PoolInfo& info : all) {
    const auto found = counts.find(info.origin);
    if (found == counts.end()) continue;
    info.saved = found->second.saved;
    info.limited = found->second.limited;
  }
  return all;
}

namespace {
admin::CredentialsState state_of(const Credentials& credentials, Instant now) {
  admin::CredentialsState state{credentials.stale(), {}, {}, {}};
  const OAuthToken* const token = credentials.token();
  if (token == nullptr) return state;
  const std::optional<Fault> fault = token->fault();
  state.token = token->serial() != 0 ? "valid" : fault ? "missing" : "expected";
  if (token->serial() != 0) state.token_expires = std::max(token->end() - now, Duration::zero());
  if (fault) state.failure = fault->detail;
  return state;
}
}  // namespace

namespace {
std::vector<admin::AddressInfo> addresses_of(const OriginRuntime& origin, Instant now) {
  std::vector<admin::AddressInfo> all;
  for (net::AddressSet::Info& one : origin.address_set->all(now)) {
    const std::string_view state = one.gone ? "gone" : one.ejected ? "ejected" : "usable";
    all.push_back({std::move(one.address), state, one.open, one.failures, one.ejections, one.busy, one.requests,
                   one.response, one.share});
  }
  return all;
}
}  // namespace

std::vector<admin::PoolInfo> ServerAdminView::snapshots() const {
  const auto held = parts_.origins.directory().hold();
  const Instant now = Clock::now();
  std::vector<admin::PoolInfo> all;
  for (const pool::Destination* destination : parts_.origins.directory().all()) {
    admin::PoolInfo info{destination->label(), destination->snapshot(now), std::nullopt, {}};
    info.learned_idle_timeout = info.snapshot.learned_idle;
    if (const OriginRuntime* context = parts_.origins.of(*destination)) {
      if (info.snapshot.class_count != 0) info.classes = context->pool.classes;
      const net::AddressSet::Counts counts = context->address_set->count(now);
      info.addresses = {counts.usable, counts.ejected, counts.gone};
      if (counts.usable + counts.ejected + counts.gone > 1) info.each_address = addresses_of(*context, now);
      if (context->credentials != nullptr) info.credentials = state_of(*context->credentials, now);
    }
    all.push_back(std::move(info));
  }
  return all;
}

std::optional<admin::PoolInfo> ServerAdminView::declared(const std::string& origin) const {
  return parts_.config.with([&](const config::Config& config) { return declared_pool(config, origin); });
}

namespace {
// A visitor of the registry's shards.
auto adding_to(admin::TrafficInfo& traffic) {
  return [&traffic](const std::string&, const metrics::OriginShard& shard) {
    shard.requests.for_each([&](metrics::MethodId, std::uint16_t code, std::uint64_t count) {
      constexpr std::uint16_t kFailures = 500;
      traffic.requests += count;
      if (code == metrics::kNoCode || code >= kFailures) traffic.failed += count;
    });
    const metrics::HistogramTotals times = shard.request.read();
    for (std::size_t i = 0; i < times.buckets.size(); ++i) traffic.times[i] += times.buckets[i];
  };
}
}  // namespace

admin::TrafficInfo ServerAdminView::traffic(const std::string& origin) const {
  admin::TrafficInfo traffic;
  const metrics::OriginSlot slot = parts_.metrics.slot_of(origin);
  if (slot == metrics::kOtherOrigin) return traffic;  // shared by those beyond [metrics] max_origins
  parts_.metrics.visit_origin(slot, adding_to(traffic));
  return traffic;
}

// Without the slot before it, kNoOrigin: those requests were refused before their origin was known.
admin::TrafficInfo ServerAdminView::total_traffic() const {
  admin::TrafficInfo traffic;
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  while (parts_.metrics.visit_origin(slot, adding_to(traffic))) ++slot;
  return traffic;
}

std::vector<admin::OriginInfo> ServerAdminView::origins() const {
  std::map<std::string, admin::OriginInfo> all;
  {
    const auto held = parts_.origins.directory().hold();
    for (const pool::Destination* destination : parts_.origins.directory().all()) {
      all[destination->label()].pool = true;
    }
  }
  parts_.config.with([&](const config::Config& config) {
    for (const config::OriginSettings& settings : config.origins) all[settings.origin.label()].alias = settings.alias;
    return true;
  });
  std::vector<admin::OriginInfo> list;
  list.reserve(all.size());
  for (auto& [label, one] : all) list.push_back({label, std::move(one.alias), one.pool});
  return list;
}

std::vector<admin::ConnectionInfo> ServerAdminView::connections(const std::string& origin) const {
  Collector collector;
  const auto held = parts_.origins.directory().hold();
  for (const pool::Destination* destination : parts_.origins.directory().all()) {
    if (destination->label() == origin) destination->visit(collector, Clock::now());
  }
  return std::move(collector.all);
}

std::vector<admin::AddressInfo> ServerAdminView::addresses(const std::string& origin) const {
  const auto held = parts_.origins.directory().hold();
  const Instant now = Clock::now();
  for (const OriginRuntime* context : parts_.origins.all()) {
    if (context->destination->label() != origin) continue;
    return addresses_of(*context, now);
  }
  return {};
}

void ServerAdminView::name_borrowers(const std::string& origin, std::vector<admin::ConnectionInfo>& connections) const {
  const auto lent = [](const admin::ConnectionInfo& one) {
    return one.state != pool::ConnectionStatus::idle && one.state != pool::ConnectionStatus::connecting;
  };
  if (std::none_of(connections.begin(), connections.end(), lent)) return;
  const std::map<std::uint64_t, std::string> held = borrowers(parts_.workers, origin);
  for (admin::ConnectionInfo& one : connections) {
    if (const auto found = held.find(one.id); found != held.end()) one.borrower = found->second;
  }
}

std::optional<metrics::InterceptSample> ServerAdminView::intercept() const {
  return parts_.intercept_leaves.sample(std::chrono::system_clock::now());
}

std::optional<admin::PoolAnalysis> ServerAdminView::study(const std::string& origin) const {
  const auto held = parts_.origins.directory().hold();
  for (const OriginRuntime* context : parts_.origins.all()) {
    if (context->destination->label() != origin) continue;
    admin::PoolAnalysis study;
    study.limits = context->destination->limits();
    study.circumstances.idle_timeout = study.limits.idle_timeout;
    study.circumstances.expire_time = study.limits.expire_time;
    study.circumstances.max_usage = study.limits.max_usage;
    study.circumstances.single_use = study.limits.single_use;
    study.circumstances.min_idle = study.limits.min_idle;
    study.wait_timeout = context->pool.wait_timeout;
    study.past = context->destination->history();
    study.intercepts = intercepts_of(parts_.metrics, origin);
    if (context->credentials != nullptr) study.credentials = state_of(*context->credentials, Clock::now());
    study.refusals = parts_.intercept_leaves.refusals_at(origin);
    return study;
  }
  return parts_.config.with([&](const config::Config& config) { return declared_study(config, origin); });
}

const admin::History* ServerAdminView::history() const {
  return &parts_.admin->history();
}

std::vector<LeakRecord> ServerAdminView::leaks() const {
  return parts_.leaks.all();
}

const metrics::Registry* ServerAdminView::registry() const {
  const bool wanted = parts_.config.with([](const config::Config& config) { return config.metrics.enabled; });
  return wanted ? &parts_.metrics : nullptr;
}

std::optional<metrics::ExecSample> ServerAdminView::exec() const {
  metrics::ExecSample sample = parts_.executors->sample();
  for (const std::unique_ptr<Worker>& worker : parts_.workers) {
    const exec::TurnTimes& times = worker->parts.loop.turn_times();
    sample.loops.push_back({times.turns(), times.delays()});
  }
  return sample;
}

admin::ThreadsInfo ServerAdminView::threads() const {
  return parts_.executors->info();
}

std::uint64_t ServerAdminView::log_dropped() const {
  return log::dropped();
}

metrics::BuildSample ServerAdminView::build() const {
  return {std::string(config::version()), __VERSION__, CARPOOL_BUILD_TYPE};
}

admin::OverloadInfo ServerAdminView::overload() const {
  const OverloadState& state = parts_.overload;
  admin::OverloadInfo info;
  info.stage = static_cast<std::uint64_t>(state.stage());
  info.sheds = name(state.stage());
  info.memory = {state.memory().used, state.memory().limit};
  info.descriptors = {state.descriptors().used, state.descriptors().limit};
  info.failed_allocations = memory_reserve::taken();
  const HeapTrim::Shown heap = parts_.heap_trim ? parts_.heap_trim->shown() : HeapTrim::Shown{};
  info.heap_used = heap.used;
  info.heap_unused = heap.unused;
  info.memory_returned = heap.returned;
  return info;
}

std::vector<metrics::CertificateSample> ServerAdminView::certificates() const {
  return parts_.certificates.sample();
}

metrics::AdminSample ServerAdminView::admin() const {
  metrics::AdminSample sample = parts_.admin->sample();
  sample.reloads_applied = parts_.reloader->applied();
  sample.reloads_refused = parts_.reloader->refused();
  for (std::size_t i = 0; i < config::kReadingLimits.size(); ++i) {
    const auto limit = static_cast<config::ReadingLimit>(i);
    sample.reload_limits.push_back({config::kReadingLimits[i], parts_.reloader->met(limit)});
  }
  return sample;
}

std::vector<std::string> ServerAdminView::not_ready() const {
  std::vector<std::string> reasons;
  if (!parts_.drain->serving()) reasons.emplace_back("draining");
  for (const std::string& origin : parts_.warm_up->under_way()) reasons.push_back("warming up " + origin);
  return reasons;
}

std::vector<std::string> ServerAdminView::warm_ups_failed() const {
  return parts_.warm_up->failed();
}

std::vector<std::string> ServerAdminView::paused() const {
  const auto held = parts_.origins.directory().hold();
  std::vector<std::string> labels;
  for (const pool::Destination* destination : parts_.origins.directory().all()) {
    if (destination->paused()) labels.push_back(destination->label());
  }
  return labels;
}

std::string ServerAdminView::config() const {
  return parts_.config.with([](const config::Config& config) { return config::print_config(config); });
}

}  // namespace carpool::proxy
