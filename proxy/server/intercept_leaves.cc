#include "proxy/server/intercept_leaves.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "proxy/net/tls/clock_skew.h"
#include "proxy/net/tls/server_context.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {

constexpr Duration kRenewalInterval = std::chrono::minutes(1);

bool any_intercepted(const config::Config& config) {
  return std::any_of(config.origins.begin(), config.origins.end(),
                     [](const config::OriginSettings& origin) { return origin.intercept; });
}

}  // namespace

Result<InterceptLeaves::Leaf> InterceptLeaves::mint(const tls::Authority& authority, const std::string& host,
                                                    WallTime now) const {
  Result<std::unique_ptr<tls::ServerContext>> made = authority.mint(host, {"h2", "http/1.1"});
  const Held lock(mutex_);
  ++(made ? minted_ : failed_);
  if (!made) return made.take_fault();
  const WallTime end = std::min<WallTime>(now + tls::Authority::kLeafLife, authority.expires());
  return Leaf{ListenerIdentity(std::move(*made)), now - tls::kClockSkew, end};
}

metrics::InterceptSample InterceptLeaves::sample(WallTime now) const {
  const Held lock(mutex_);
  metrics::InterceptSample sample{minted_, failed_, 0, std::nullopt, intercepts_.refusals()};
  for (const Leaf& leaf : shown_) {
    if (leaf.valid_at(now)) ++sample.leaves;
  }
  if (authority_end_) sample.authority_seconds = std::chrono::duration<double>(*authority_end_ - now).count();
  return sample;
}

std::vector<metrics::RefusalSample> InterceptLeaves::refusals_at(const std::string& label) const {
  if (!intercepts_.leaf(label)) return {};
  std::vector<metrics::RefusalSample> all = intercepts_.refusals();
  std::erase_if(all, [&label](const metrics::RefusalSample& one) { return one.origin != label; });
  return all;
}

Result<InterceptLeaves::Plan> InterceptLeaves::prepare(const config::Config& config) const {
  Plan plan;
  plan.tunnels_after_refusal = config.intercept.on_distrust == config::OnDistrust::tunnel;
  if (!any_intercepted(config)) {
    const Held lock(signing_);
    plan.number = in_force_.number;
    return plan;
  }
  Result<std::unique_ptr<tls::Authority>> authority = tls::Authority::load(config.intercept.ca_dir);
  if (!authority) {
    Fault fault = authority.take_fault();
    fault.detail.insert(0, "intercept.ca_dir: ");
    return fault;
  }
  plan.authority = std::move(*authority);
  const WallTime now = std::chrono::system_clock::now();
  const Held lock(signing_);
  const tls::Authority* const before = in_force_.authority.get();
  const bool same = before != nullptr && before->fingerprint() == plan.authority->fingerprint();
  plan.number = in_force_.number + (same ? 0 : 1);
  plan.replaces = before != nullptr && !same;
  for (const config::OriginSettings& origin : config.origins) {
    if (!origin.intercept) continue;
    const std::string label = origin.origin.label();
    const auto known = in_force_.leaves.find(label);
    if (same && known != in_force_.leaves.end() && known->second.valid_at(now)) {
      plan.leaves.insert(*known);
      continue;
    }
    Result<Leaf> leaf = mint(*plan.authority, origin.origin.host, now);
    if (!leaf) {
      Fault fault = leaf.take_fault();
      fault.detail.insert(0, "the intercepted origin " + label + ": ");
      return fault;
    }
    plan.leaves.emplace(label, std::move(*leaf));
  }
  return plan;
}

void InterceptLeaves::publish() {
  Intercepts::Leaves identities;
  std::vector<Leaf> shown;
  for (const auto& [label, leaf] : in_force_.leaves) {
    identities.emplace(label, leaf.identity);
    shown.push_back(leaf);
  }
  intercepts_.replace(std::move(identities), in_force_.number, in_force_.tunnels_after_refusal);
  const Held lock(mutex_);
  std::swap(shown_, shown);
  authority_end_.reset();
  if (in_force_.authority != nullptr) authority_end_ = in_force_.authority->expires();
}

void InterceptLeaves::apply(Plan plan) {
  const Held lock(signing_);
  in_force_ = std::move(plan);
  publish();
}

void InterceptLeaves::start(exec::Loop& loop, exec::Executor& background) {
  exec::PeriodicTask::Work& own = *this;
  renewal_ = std::make_unique<exec::PeriodicTask>(loop, background, own, kRenewalInterval);
}

void InterceptLeaves::renew(WallTime now) {
  const Held lock(signing_);
  bool changed = false;
  for (auto& [label, leaf] : in_force_.leaves) changed = renew(label, leaf, now) || changed;
  if (changed) publish();
}

// Returns true if the leaf was replaced or removed. A leaf that expires together with its authority cannot be renewed
// earlier.
bool InterceptLeaves::renew(const std::string& label, Leaf& leaf, WallTime now) const {
  const bool valid = leaf.valid_at(now);
  const bool ended = now >= in_force_.authority->expires();
  const bool last = leaf.end >= in_force_.authority->expires();
  const bool lasts = last || now < leaf.end - tls::Authority::kLeafLife / 3;
  const bool removed = ended && leaf.identity == nullptr;
  if (valid ? lasts : removed) return false;
  const Result<pool::Origin> origin = pool::parse_origin(label);
  CARPOOL_ASSERT(origin);  // `label` is the label of an origin
  Result<Leaf> made = ended ? Result<Leaf>(Fault{FaultKind::tls_certificate, Side::self, "the authority has expired"})
                            : mint(*in_force_.authority, origin->host, now);
  if (made) {
    leaf = std::move(*made);
    return true;
  }
  log::warn("intercept", "a certificate cannot be renewed", {{"origin", label}, {"error", made.fault().detail}});
  if (valid) return false;
  return std::exchange(leaf.identity, nullptr) != nullptr;
}

}  // namespace carpool::proxy
