// ServerAdminView, the state of the process. Pools, traffic and connections: admin_view_*.cc.
#include "proxy/server/admin_view.h"

#include "metrics/registry.h"
#include "proxy/config/in_force.h"
#include "proxy/config/options.h"
#include "proxy/config/print.h"
#include "proxy/config/read.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/server/admin/admin_server.h"
#include "proxy/server/admin/config_json.h"
#include "proxy/server/drain.h"
#include "proxy/server/executors.h"
#include "proxy/server/intercept_leaves.h"
#include "proxy/server/overload/heap_trim.h"
#include "proxy/server/overload/memory_reserve.h"
#include "proxy/server/reload/certificate_ends.h"
#include "proxy/server/reload/reloader.h"
#include "proxy/server/worker.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/warm_up.h"

namespace carpool::proxy {

std::optional<metrics::InterceptSample> ServerAdminView::intercept() const {
  return parts_.intercept_leaves.sample(std::chrono::system_clock::now());
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
  info.stage = static_cast<std::uint64_t>(state.level());
  info.shed_level = name(state.level());
  info.memory = {state.memory().used, state.memory().limit};
  info.descriptors = {state.descriptors().used, state.descriptors().limit};
  info.failed_allocations = memory_reserve::taken();
  const HeapTrim::Usage heap = parts_.heap_trim ? parts_.heap_trim->usage() : HeapTrim::Usage{};
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

std::string ServerAdminView::config(admin::ConfigFormat format) const {
  const bool json = format == admin::ConfigFormat::json;
  return parts_.config.with([json](const config::Config& config) {
    return json ? admin::config_json(config) : config::print_config(config);
  });
}

}  // namespace carpool::proxy
