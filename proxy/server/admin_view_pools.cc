// ServerAdminView, the pools with their origins, addresses and counters.
#include <algorithm>
#include <array>
#include <map>

#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/config/in_force.h"
#include "proxy/server/admin_view.h"
#include "proxy/server/declared_origin.h"
#include "proxy/server/intercept_leaves.h"
#include "proxy/server/untracked_watch.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/oauth_token.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
std::vector<metrics::Labelled> intercepts_of(const metrics::Registry& registry, const std::string& origin) {
  const metrics::OriginSlot slot = registry.slot_of(origin);
  if (slot == metrics::kOtherOrigin) return {};  // shared by the origins beyond [metrics] max_origins
  std::array<std::uint64_t, metrics::kIntercepts.size()> sums{};
  registry.visit_origin(slot, [&](const std::string&, const metrics::OriginShard& shard) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += shard.intercepts[i].read();
  });
  std::vector<metrics::Labelled> found;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != 0) found.push_back({metrics::kIntercepts[i], sums[i]});
  }
  return found;
}

// Counts: the loops' counters of one origin, outside the pool.
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

// Returns the state of an origin that has no pool: its files are followed, and its token is fetched, from the start on.
std::optional<admin::CredentialsState> credentials_without_pool(const OriginRegistry& origins,
                                                                const std::string& label) {
  for (const Credentials* const one : origins.all_credentials()) {
    if (one->label() == label) return state_of(*one, Clock::now());
  }
  return std::nullopt;
}

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

admin::CountedPools ServerAdminView::counted() const {
  const pool::Directory& directory = parts_.origins.directory();
  const auto held = directory.hold();
  admin::CountedPools counted{
      snapshots(),
      {directory.reclaimed(), directory.reclaimed_count(), directory.evicted_count(), directory.max_origins(),
       directory.starved(), parts_.untracked ? parts_.untracked->count() : 0},
      {}};
  for (const auto& [label, totals] : directory.replaced()) counted.ended.push_back({label, totals, std::nullopt, {}});
  return counted;
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

std::vector<admin::PoolInfo> ServerAdminView::snapshots() const {
  const auto held = parts_.origins.directory().hold();
  const Instant now = Clock::now();
  std::vector<admin::PoolInfo> all;
  for (const pool::Destination* destination : parts_.origins.directory().all()) {
    admin::PoolInfo info{destination->label(), destination->snapshot(now), std::nullopt, {}};
    info.learned_idle_timeout = info.snapshot.learned_idle;
    if (const OriginRuntime* context = parts_.origins.of(*destination)) {
      info.replaced = context->is_replaced();
      if (info.snapshot.class_count != 0) info.classes = context->pool.classes;
      const net::AddressSet::Counts counts = context->address_set->count(now);
      info.addresses = {counts.usable, counts.ejected, counts.gone};
      if (counts.usable + counts.ejected + counts.gone > 1) info.each_address = addresses_of(*context, now);
      if (context->credentials != nullptr) info.credentials = state_of(*context->credentials, now);
    }
    all.push_back(std::move(info));
  }
  std::stable_partition(all.begin(), all.end(), [](const admin::PoolInfo& info) { return !info.replaced; });
  return all;
}

std::optional<admin::PoolInfo> ServerAdminView::declared(const std::string& origin) const {
  std::optional<admin::PoolInfo> info =
      parts_.config.with([&](const config::Config& config) { return declared_pool(config, origin); });
  if (info) info->credentials = credentials_without_pool(parts_.origins, origin);
  return info;
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

std::vector<admin::AddressInfo> ServerAdminView::addresses(const std::string& origin) const {
  const auto held = parts_.origins.directory().hold();
  const Instant now = Clock::now();
  for (const OriginRuntime* context : parts_.origins.all()) {
    if (context->destination->label() != origin) continue;
    return addresses_of(*context, now);
  }
  return {};
}

std::optional<admin::PoolAnalysis> ServerAdminView::study(const std::string& origin) const {
  const auto held = parts_.origins.directory().hold();
  for (const OriginRuntime* context : parts_.origins.all()) {
    if (context->destination->label() != origin) continue;
    admin::PoolAnalysis study;
    study.limits = context->destination->limits();
    study.explain_settings.idle_timeout = study.limits.idle_timeout;
    study.explain_settings.expire_time = study.limits.expire_time;
    study.explain_settings.max_usage = study.limits.max_usage;
    study.explain_settings.single_use = study.limits.single_use;
    study.explain_settings.min_idle = study.limits.min_idle;
    study.explain_settings.maximize = study.limits.maximize;
    study.wait_timeout = context->pool.wait_timeout;
    study.past = context->destination->history();
    study.intercepts = intercepts_of(parts_.metrics, origin);
    if (context->credentials != nullptr) study.credentials = state_of(*context->credentials, Clock::now());
    study.refusals = parts_.intercept_leaves.refusals_at(origin);
    return study;
  }
  std::optional<admin::PoolAnalysis> study =
      parts_.config.with([&](const config::Config& config) { return declared_study(config, origin); });
  if (study) study->credentials = credentials_without_pool(parts_.origins, origin);
  return study;
}

std::vector<std::string> ServerAdminView::paused() const {
  const auto held = parts_.origins.directory().hold();
  std::vector<std::string> labels;
  for (const pool::Destination* destination : parts_.origins.directory().all()) {
    if (destination->paused()) labels.push_back(destination->label());
  }
  return labels;
}

}  // namespace carpool::proxy
