#include "proxy/upstream/origin/origin_registry.h"

#include <algorithm>
#include <utility>

#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/upstream/fd_budget.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/parent_choice.h"

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
  for (const std::string& protocol : upstream.protocols)
    settings.alpn.emplace_back(protocol == "h1" ? "http/1.1" : "h2");
  return settings;
}

// Over TLS the origin chooses; plain text means HTTP/1.1 unless only HTTP/2 is allowed (prior knowledge).
ProtocolSet speaks_of(const config::Upstream& upstream, pool::Scheme scheme) {
  const auto lists = [&](std::string_view word) {
    return std::find(upstream.protocols.begin(), upstream.protocols.end(), word) != upstream.protocols.end();
  };
  ProtocolSet speaks{lists("h1"), lists("h2")};
  if (scheme == pool::Scheme::tcp) return {true, false};
  if (scheme == pool::Scheme::http && speaks.h1) speaks.h2 = false;
  speaks.bare_lf = std::find(upstream.lenient.begin(), upstream.lenient.end(), "bare_lf") != upstream.lenient.end();
  return speaks;
}

// Assumed until the first connection reports its limit.
std::uint32_t expected_streams(const ProtocolSet& speaks, std::uint32_t max_streams) {
  if (!speaks.h2) return 1;
  return speaks.h1 ? 0 : max_streams;
}

// All connections of a tcp origin are tunnels, so their number is its size, and a request that finds it full waits in
// line. A host may be asked for a hundred at once: unless a setting says otherwise, a quarter of all connections that
// the descriptors permit.
std::uint32_t tunnels_alone(const config::PoolSettings& settings, const config::Config& config) {
  constexpr std::uint32_t kMost = 1024;
  const bool usual = settings.max_tunnels == 0 && settings.size == config::PoolSettings{}.size;
  const std::uint32_t chosen = settings.tunnels(pool::Scheme::tcp);
  return usual ? std::max(chosen, std::min(permitted_total(config) / 4, kMost)) : chosen;
}

pool::Limits limits_of(const config::PoolSettings& settings, pool::Scheme scheme, const ProtocolSet& speaks,
                       const config::Config& config) {
  const bool tunnels_only = scheme == pool::Scheme::tcp;
  pool::Limits limits;
  limits.size = tunnels_only ? tunnels_alone(settings, config) : settings.size;
  limits.max_waiting = settings.max_waiting;
  limits.max_usage = settings.max_usage;
  limits.single_use = settings.reuse == config::Reuse::never;
  limits.max_tunnels = tunnels_only ? 0 : settings.tunnels(scheme);
  limits.expire_time = settings.expire_time;
  limits.idle_timeout = settings.idle_timeout;
  limits.strategy = settings.strategy;
  limits.maximize = settings.maximize;
  limits.quarantine = settings.quarantine;
  limits.max_cool_down = settings.cool_down ? settings.max_cool_down : Duration::zero();
  limits.evict = settings.evict;
  limits.min_idle = settings.min_idle;
  limits.learn_idle = settings.learn_idle_timeout;
  limits.classes = static_cast<std::uint8_t>(settings.classes.size());  // few: checked with the configuration
  limits.expected_streams = expected_streams(speaks, settings.max_streams);
  return limits;
}

net::AddressRules rules_of(const config::Addresses& settings) {
  return {settings.eject_after,
          settings.eject_time,
          settings.gone_after,
          settings.retire_every,
          settings.balance == config::Balance::least_loaded,
          settings.slow_start};
}

constexpr std::size_t kMaxVersions = 1000;  // of the settings of one origin

std::string key_of(const pool::Origin& origin) {
  return origin.label();
}
}  // namespace

OriginRegistry::OriginRegistry(const config::Config& config, metrics::Registry& metrics)
    : metrics_(metrics), loops_(config.workers), config_(&config) {}

OriginRegistry::~OriginRegistry() = default;

Result<std::unique_ptr<OriginRegistry>> OriginRegistry::make(config::Config& config, pool::Environment& server,
                                                             metrics::Registry& metrics) {
  std::unique_ptr<OriginRegistry> origins(new OriginRegistry(config, metrics));
  origins->directory_ = std::make_unique<pool::Directory>(
      pool::DirectoryLimits{config.pool_total.max_origins, effective_total(config)}, server, config.workers);
  Result<Prepared> prepared = origins->prepare(config);
  if (!prepared) return prepared.take_fault();
  origins->apply(config, std::move(*prepared));
  return origins;
}

// ---- applying a configuration ----

// Equal settings keep one number forever, so that a pool is found again if its settings return. Without TLS only the
// protocols, leniencies and the parent proxy distinguish two origins.
Result<std::uint32_t> OriginRegistry::number_of(pool::Scheme scheme, const config::Upstream& upstream,
                                                bool through_parent) {
  config::Upstream key = settings_without_choice(upstream, through_parent);
  if (scheme != pool::Scheme::https) key.tls = {};
  for (std::size_t i = 0; i < identities_.size(); ++i) {
    if (identities_[i].upstream == key) return static_cast<std::uint32_t>(i);
  }
  if (identities_.size() >= kMaxIdentities) {
    return Fault{FaultKind::budget, Side::self,
                 "too many different [upstream] settings since the start; restart carpool"};
  }
  auto identity = std::make_unique<TlsIdentity>(tls_settings(key));
  // Files that the configuration names must be valid now; the system's bundle is read when an origin needs it.
  if (!key.tls.ca_file.empty() || !key.tls.cert_file.empty()) {
    if (Status loaded = identity->load(); !loaded) return loaded.take_fault();
  }
  const std::scoped_lock lock(mutex_);
  identities_.push_back({std::move(key), std::move(identity), nullptr});
  return static_cast<std::uint32_t>(identities_.size() - 1);
}

Result<OriginRegistry::Prepared> OriginRegistry::prepare(config::Config& fresh) {
  Prepared prepared;
  for (const Identity& identity : identities_) {
    Result<std::shared_ptr<tls::ClientContext>> renewed = identity.tls->renew();
    if (!renewed) return renewed.take_fault();
    if (!*renewed) continue;
    prepared.renewed.emplace_back(identity.tls.get(), std::move(*renewed));
    const config::Tls& tls = identity.upstream.tls;
    for (const std::string& file : {tls.ca_file, tls.cert_file}) {
      if (!file.empty()) prepared.files.push_back(file);
    }
    if (tls.ca_file.empty() && tls.verify) prepared.files.emplace_back("the system's certificate authorities");
  }
  if (Status numbered = number_origins(fresh, prepared); !numbered) return numbered.take_fault();
  if (Status found = find_parents(fresh, prepared); !found) return found.take_fault();
  for (const config::OriginSettings& settings : fresh.origins) {
    if (settings.headers.empty() && settings.oauth2.token_url.empty()) continue;
    Result<Credentials*> credentials = credentials_of(settings);
    if (!credentials) return credentials.take_fault();
    prepared.credentials.emplace(settings.origin.label(), *credentials);
  }
  return prepared;
}

// Equal settings keep one object, so that a runtime is found again if its settings return.
Result<Credentials*> OriginRegistry::credentials_of(const config::OriginSettings& settings) {
  for (const std::unique_ptr<Credentials>& known : made_credentials_) {
    if (!known->made_of(settings)) continue;
    static_cast<void>(known->look());  // its files were not read while it was not in force
    return known.get();
  }
  if (made_credentials_.size() >= kMaxIdentities) {
    return Fault{FaultKind::budget, Side::self,
                 "too many different credentials of origins since the start; restart carpool"};
  }
  Result<std::unique_ptr<Credentials>> made = Credentials::make(settings, loops_);
  if (!made) return made.take_fault();
  return made_credentials_.emplace_back(std::move(*made)).get();
}

std::vector<Credentials*> OriginRegistry::all_credentials() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Credentials*> all;
  for (const auto& [label, credentials] : credentials_) all.push_back(credentials);
  return all;
}

std::vector<std::string> OriginRegistry::apply(const config::Config& fresh, Prepared&& prepared) {
  for (auto& [identity, context] : prepared.renewed) identity->replace(std::move(context));
  const std::scoped_lock lock(mutex_);
  config_ = &fresh;
  defaults_ = prepared.defaults;
  tunnels_ = std::move(prepared.tunnels);
  for (std::size_t i = 0; i < prepared.parents.size(); ++i) identities_[i].parent = prepared.parents[i];
  credentials_ = std::move(prepared.credentials);
  configured_.clear();
  aliases_.clear();
  for (const config::OriginSettings& settings : fresh.origins) {
    configured_.emplace(key_of(settings.origin), &settings);
    for (const std::string& alias : settings.alias) aliases_.emplace(alias, &settings);
    metrics_.keep_origin(key_of(settings.origin));
  }
  directory_->keep_places(static_cast<std::uint32_t>(configured_.size()));
  for (const auto& [label, context] : contexts_) {
    const bool configured = configured_.count(label) != 0;
    directory_->set_listing(*context->destination, configured ? pool::Listing::configured : pool::Listing::unlisted);
  }
  std::vector<std::string> behind;
  for (auto& [label, current] : contexts_) {
    Result<OriginRuntime*> made = version_of(current->destination->origin());
    if (made) {
      const auto pause = current->destination->current_pause();
      if (pause && (*made)->destination != current->destination) (*made)->destination->restore_pause(*pause);
      current = *made;
      current->reported.store(false, std::memory_order_relaxed);  // the rules may be others
    } else {
      behind.push_back(label + ": " + made.fault().detail);
    }
  }
  return behind;
}

void OriginRegistry::apply_limits(Instant now) {
  for (OriginRuntime* context : all()) {
    pool::Destination& destination = *context->destination;
    destination.set_limits(limits_of(context->pool, destination.origin().scheme, context->speaks, *config_), now);
  }
}

// ---- one origin ----

const config::OriginSettings* OriginRegistry::settings_of(const pool::Origin& origin) const {
  const auto found = configured_.find(key_of(origin));
  return found == configured_.end() ? nullptr : found->second;
}

const config::OriginSettings* OriginRegistry::alias(const std::string& host) const {
  const std::scoped_lock lock(mutex_);
  const auto found = aliases_.find(host);
  return found == aliases_.end() ? nullptr : found->second;
}

std::unique_ptr<OriginRuntime> OriginRegistry::describe(const pool::Origin& origin) const {
  auto context = std::make_unique<OriginRuntime>();
  const config::OriginSettings* settings = settings_of(origin);
  context->pool = settings != nullptr ? settings->pool : config_->pool;
  context->request = settings != nullptr ? settings->request : config_->request;
  // Burst: the requests lost if all connections, or one session with all its streams, fail at once.
  context->retries.open(std::max(context->pool.size, context->pool.max_streams), context->request.retry_budget);
  context->retry_on = RetryConditions(context->request.retry_on);
  context->requests.open(context->request.rate, context->request.rate_burst);
  context->connects.open(context->pool.connect_rate, context->pool.connect_burst);
  context->authority = origin.authority();
  context->speaks = speaks_of(settings != nullptr ? settings->upstream : config_->upstream, origin.scheme);
  if (origin.scheme == pool::Scheme::https) context->tls = identities_[origin.tls].tls.get();
  context->parent = identities_[identity_number(origin)].parent;
  const bool absolute = origin.scheme == pool::Scheme::http && !context->speaks.h2;
  if (context->parent != nullptr && absolute) context->absolute = origin.label();
  // Nothing can be said about the requests inside a tunnel.
  context->restricted = settings != nullptr ? !settings->allow.empty() : is_place_of_rules(origin);
  if (settings == nullptr) return context;
  context->streaming = settings->profile == config::Profile::streaming;
  context->allow = settings->allow;
  if (const auto own = credentials_.find(key_of(origin)); own != credentials_.end()) context->credentials = own->second;
  for (const std::string& text : settings->allow) {
    Result<http::RequestRule> rule = http::RequestRule::parse(text);
    if (rule) context->rules.push_back(std::move(*rule));  // validated with the configuration
  }
  for (const std::string& text : settings->addresses) {
    const Result<net::Address> address = net::Address::parse(text);
    if (address) context->pinned.push_back(*address);  // validated with the configuration
  }
  return context;
}

// Returns true for the target of a CONNECT that is the place of an origin with rules.
bool OriginRegistry::is_place_of_rules(const pool::Origin& origin) const {
  if (origin.scheme != pool::Scheme::tcp) return false;
  return std::any_of(config_->origins.begin(), config_->origins.end(), [&](const config::OriginSettings& settings) {
    return !settings.allow.empty() && settings.origin.host == origin.host && settings.origin.port == origin.port;
  });
}

// Returns the context for the configuration in force; creates one only if no equal one ever existed.
Result<OriginRuntime*> OriginRegistry::version_of(pool::Origin origin) {
  origin.tls = tls_number(origin);
  std::unique_ptr<OriginRuntime> context = describe(origin);
  const pool::Limits limits = limits_of(context->pool, origin.scheme, context->speaks, *config_);
  const bool configured = settings_of(origin) != nullptr;
  Result<pool::Destination*> destination =
      directory_->at(origin, limits, Clock::now(), configured ? pool::Listing::configured : pool::Listing::unlisted);
  if (!destination) return destination.take_fault();
  context->destination = *destination;
  std::unique_ptr<net::AddressSet>& address_set = address_sets_[*destination];
  if (!address_set) address_set = std::make_unique<net::AddressSet>(&(*destination)->endpoints());
  address_set->follow(rules_of(context->pool.addresses));
  context->address_set = address_set.get();
  std::vector<Context>& versions = versions_[key_of(origin)];
  auto known = std::find_if(versions.begin(), versions.end(), [&](const Context& v) { return v->same(*context); });
  if (known == versions.end()) {
    if (versions.size() >= kMaxVersions) {
      return Fault{FaultKind::budget, Side::self, "too many different settings since the start; restart carpool"};
    }
    context->slot = metrics_.add_origin(origin.label());
    known = versions.insert(versions.end(), std::move(context));
  }
  by_destination_[*destination] = known->get();
  for (const Context& one : versions) {
    one->replaced.store(one->destination != *destination, std::memory_order_relaxed);
  }
  return known->get();
}

std::vector<pool::Destination*> OriginRegistry::retire_idle(Instant now, Duration unused) {
  // Not under the mutex as a whole: releasing a slot may make another pool dial, which calls this registry.
  std::vector<pool::Destination*> retired =
      directory_->unlink_idle(now, unused, [&](const pool::Destination& destination) {
        const std::scoped_lock lock(mutex_);
        const config::OriginSettings* settings = settings_of(destination.origin());
        return settings != nullptr && settings->origin.tls == destination.origin().tls;
      });
  const std::scoped_lock lock(mutex_);
  for (const pool::Destination* destination : retired) {
    const auto current = contexts_.find(destination->label());
    if (current != contexts_.end() && current->second->destination == destination) contexts_.erase(current);
  }
  return retired;
}

// Reports of an address and uses of a context end with the pool, because no user of them is left. Until then its
// connections still decrement the counts of their AddressSet.
bool OriginRegistry::destroy(const std::vector<pool::Destination*>& retired) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> labels;
  labels.reserve(retired.size());
  for (const pool::Destination* destination : retired) labels.push_back(destination->label());
  if (!directory_->destroy(retired)) return false;
  for (std::size_t i = 0; i < retired.size(); ++i) {
    by_destination_.erase(retired[i]);
    address_sets_.erase(retired[i]);
    const auto versions = versions_.find(labels[i]);
    if (versions == versions_.end()) continue;
    std::erase_if(versions->second, [&](const Context& one) { return one->destination == retired[i]; });
    if (versions->second.empty()) versions_.erase(versions);
  }
  return true;
}

Result<OriginRuntime*> OriginRegistry::enter(const pool::Origin& origin) {
  Result<OriginRuntime*> found = at(origin);
  if (found || found.fault().kind != FaultKind::origins_exhausted) return found;
  // Not under the mutex: an ending connection may start a dial elsewhere, which calls this registry.
  if (!directory_->make_room(Clock::now())) return found;
  return at(origin);
}

Result<OriginRuntime*> OriginRegistry::at(const pool::Origin& origin) {
  const std::string key = key_of(origin);
  const std::scoped_lock lock(mutex_);
  if (const auto found = contexts_.find(key); found != contexts_.end() && !found->second->destination->reclaimed()) {
    found->second->destination->touch(Clock::now());
    return found->second;
  }
  Result<OriginRuntime*> made = version_of(origin);
  if (made) contexts_.insert_or_assign(key, *made);
  return made;
}

OriginRuntime* OriginRegistry::of(const pool::Destination& destination) const {
  const std::scoped_lock lock(mutex_);
  const auto found = by_destination_.find(&destination);
  return found == by_destination_.end() ? nullptr : found->second;
}

std::vector<OriginRuntime*> OriginRegistry::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<OriginRuntime*> all;
  for (const auto& [key, context] : contexts_) all.push_back(context);
  return all;
}

std::vector<OriginRuntime*> OriginRegistry::under(const std::vector<const TlsIdentity*>& identities) const {
  const std::scoped_lock lock(mutex_);
  std::vector<OriginRuntime*> found;
  for (const auto& [destination, context] : by_destination_) {
    const bool listed = std::find(identities.begin(), identities.end(), context->tls) != identities.end();
    // A reclaimed destination may be destroyed before this loop is done with it; the others wait for this loop.
    if (context->tls != nullptr && listed && !destination->reclaimed()) found.push_back(context);
  }
  return found;
}

}  // namespace carpool::proxy
