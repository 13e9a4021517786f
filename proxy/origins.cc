#include "proxy/origins.h"

#include <algorithm>
#include <utility>

#include "proxy/descriptors.h"

namespace carpool::proxy {

namespace {
tls::ClientSettings tls_settings(const config::Upstream& upstream) {
  tls::ClientSettings settings;
  settings.ca_file = upstream.tls.ca_file;
  settings.cert_file = upstream.tls.cert_file;
  settings.key_file = upstream.tls.key_file;
  settings.min_version = upstream.tls.min_version == config::TlsVersion::tls13 ? "1.3" : "1.2";
  settings.verify = upstream.tls.verify;
  settings.server_name = upstream.tls.server_name;
  settings.alpn = {"http/1.1"};  // h2 joins the list when the upstream side speaks it
  return settings;
}

pool::Limits limits_of(const config::PoolSettings& settings, pool::Scheme scheme) {
  pool::Limits limits;
  limits.size = settings.size;
  limits.max_waiting = settings.max_waiting;
  // A connection that may never be used again serves once.
  limits.max_usage = settings.reuse == config::Reuse::never ? 1 : settings.max_usage;
  limits.max_tunnels = settings.tunnels(scheme);
  limits.expire_time = settings.expire_time;
  limits.idle_timeout = settings.idle_timeout;
  limits.strategy = static_cast<pool::Strategy>(settings.strategy);  // the same names in the same order
  limits.maximize = settings.maximize;
  limits.quarantine = settings.quarantine;
  limits.evict = static_cast<pool::Evict>(settings.evict);
  return limits;
}

std::string key_of(const pool::Origin& origin) {
  return origin.label();
}
}  // namespace

Origins::Origins(const config::Config& config, metrics::Registry& metrics) : config_(config), metrics_(metrics) {
  for (const config::OriginSettings& settings : config.origins) {
    configured_.emplace(key_of(settings.origin), &settings);
    for (const std::string& alias : settings.alias) aliases_.emplace(alias, &settings);
  }
}

Origins::~Origins() = default;

Result<std::unique_ptr<Origins>> Origins::make(const config::Config& config, pool::House& house,
                                               metrics::Registry& metrics) {
  std::unique_ptr<Origins> origins(new Origins(config, metrics));
  origins->directory_ = std::make_unique<pool::Directory>(
      pool::DirectoryLimits{config.pool_total.max_origins, effective_total(config)}, house, config.workers);
  if (Status loaded = origins->load_tls(); !loaded) return loaded.take_fault();
  return origins;
}

Status Origins::load_tls() {
  std::uint32_t identities = 1;
  for (const config::OriginSettings& settings : config_.origins)
    identities = std::max(identities, settings.origin.tls + 1);
  tls_.resize(identities);
  tls_[0] = std::make_unique<TlsIdentity>(tls_settings(config_.upstream));
  for (const config::OriginSettings& settings : config_.origins) {
    auto& identity = tls_[settings.origin.tls];
    if (!identity) identity = std::make_unique<TlsIdentity>(tls_settings(settings.upstream));
  }
  // Files that the configuration names must be good now; the system's bundle is read when an origin needs it.
  if (!config_.upstream.tls.ca_file.empty() || !config_.upstream.tls.cert_file.empty()) {
    if (Status loaded = tls_[0]->load(); !loaded) return loaded;
  }
  for (std::size_t i = 1; i < tls_.size(); ++i) {
    if (!tls_[i]) continue;
    if (Status loaded = tls_[i]->load(); !loaded) return loaded;
  }
  return Done{};
}

const config::OriginSettings* Origins::settings_of(const pool::Origin& origin) const {
  const auto found = configured_.find(key_of(origin));
  return found == configured_.end() ? nullptr : found->second;
}

const config::OriginSettings* Origins::alias(const std::string& host) const {
  const auto found = aliases_.find(host);
  return found == aliases_.end() ? nullptr : found->second;
}

std::unique_ptr<OriginContext> Origins::describe(const pool::Origin& origin) const {
  auto context = std::make_unique<OriginContext>();
  const config::OriginSettings* settings = settings_of(origin);
  context->pool = settings != nullptr ? settings->pool : config_.pool;
  context->request = settings != nullptr ? settings->request : config_.request;
  context->authority = origin.authority();
  if (origin.scheme == pool::Scheme::https) context->tls = tls_[origin.tls].get();
  if (settings == nullptr) return context;
  for (const std::string& text : settings->addresses) {
    const Result<net::Address> address = net::Address::parse(text);
    if (address) context->pinned.push_back(*address);  // checked with the configuration
  }
  return context;
}

Result<OriginContext*> Origins::at(pool::Origin origin) {
  if (const config::OriginSettings* settings = settings_of(origin)) origin.tls = settings->origin.tls;
  const std::string key = key_of(origin);
  const std::scoped_lock lock(mutex_);
  if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second.get();
  std::unique_ptr<OriginContext> context = describe(origin);
  Result<pool::Destination*> destination = directory_->at(origin, limits_of(context->pool, origin.scheme));
  if (!destination) return destination.take_fault();
  context->destination = *destination;
  context->slot = metrics_.add_origin(origin.label());
  by_destination_.emplace(*destination, context.get());
  return contexts_.emplace(key, std::move(context)).first->second.get();
}

OriginContext* Origins::of(const pool::Destination& destination) const {
  const std::scoped_lock lock(mutex_);
  const auto found = by_destination_.find(&destination);
  return found == by_destination_.end() ? nullptr : found->second;
}

std::vector<OriginContext*> Origins::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<OriginContext*> all;
  for (const auto& [key, context] : contexts_) all.push_back(context.get());
  return all;
}

}  // namespace carpool::proxy
