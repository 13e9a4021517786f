#include "proxy/server/intercept_leaves.h"

#include <algorithm>
#include <utility>

#include "proxy/net/tls/server_context.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {

constexpr Duration kLookEvery = std::chrono::minutes(1);

// A third of a leaf's life is left then; of an authority that ends sooner, its leaves last no longer.
tls::Authority::WallTime next_renewal() {
  return std::chrono::system_clock::now() + tls::Authority::kLeafLife * 2 / 3;
}

Result<ListenerIdentity> mint(const tls::Authority& authority, const std::string& host) {
  Result<std::unique_ptr<tls::ServerContext>> made = authority.mint(host, {"h2", "http/1.1"});
  if (!made) return made.take_fault();
  return ListenerIdentity(std::move(*made));
}

bool any_intercepted(const config::Config& config) {
  return std::any_of(config.origins.begin(), config.origins.end(),
                     [](const config::OriginSettings& origin) { return origin.intercept; });
}

}  // namespace

Result<InterceptLeaves::Plan> InterceptLeaves::prepare(const config::Config& config) const {
  Plan plan;
  plan.tunnels_after_refusal = config.intercept.on_distrust == config::OnDistrust::tunnel;
  if (!any_intercepted(config)) return plan;
  Result<std::unique_ptr<tls::Authority>> authority = tls::Authority::load(config.intercept.ca_dir);
  if (!authority) {
    Fault fault = authority.take_fault();
    fault.detail.insert(0, "intercept.ca_dir: ");
    return fault;
  }
  plan.authority = std::move(*authority);
  const std::scoped_lock lock(mutex_);
  const bool same = authority_ != nullptr && authority_->fingerprint() == plan.authority->fingerprint();
  for (const config::OriginSettings& origin : config.origins) {
    if (!origin.intercept) continue;
    const std::string label = origin.origin.label();
    if (const auto known = leaves_.find(label); same && known != leaves_.end() && known->second != nullptr) {
      plan.leaves.insert(*known);
      continue;
    }
    Result<ListenerIdentity> leaf = mint(*plan.authority, origin.origin.host);
    if (!leaf) {
      Fault fault = leaf.take_fault();
      fault.detail.insert(0, "the intercepted origin " + label + ": ");
      return fault;
    }
    plan.leaves.emplace(label, std::move(*leaf));
  }
  return plan;
}

void InterceptLeaves::apply(Plan plan) {
  const std::scoped_lock lock(mutex_);
  const bool fresh = leaves_.empty();
  authority_ = std::move(plan.authority);
  leaves_ = std::move(plan.leaves);
  tunnels_after_refusal_ = plan.tunnels_after_refusal;
  if (fresh) renew_at_ = next_renewal();
  intercepts_.replace(leaves_, tunnels_after_refusal_);
}

void InterceptLeaves::start(exec::Loop& loop, exec::Executor& background) {
  exec::PeriodicTask::Work& own = *this;
  renewal_ = std::make_unique<exec::PeriodicTask>(loop, background, own, kLookEvery);
}

// A certificate that cannot be signed any more is kept while it is valid; then its origin gets tunnels.
void InterceptLeaves::work() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::system_clock::now();
  if (authority_ == nullptr) return;
  const bool over = now >= authority_->expires();
  if (now < renew_at_ && !over) return;
  renew_at_ = next_renewal();
  for (auto& [label, leaf] : leaves_) {
    if (over && leaf == nullptr) continue;
    Result<pool::Origin> origin = pool::parse_origin(label);
    Result<ListenerIdentity> made = origin ? mint(*authority_, origin->host) : Result<ListenerIdentity>(origin.fault());
    if (!made)
      log::warn("intercept", "a certificate cannot be renewed", {{"origin", label}, {"error", made.fault().detail}});
    if (made) {
      leaf = std::move(*made);
    } else if (over) {
      leaf = nullptr;
    }
  }
  intercepts_.replace(leaves_, tunnels_after_refusal_);
}

}  // namespace carpool::proxy
