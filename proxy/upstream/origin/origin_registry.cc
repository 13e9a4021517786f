#include "proxy/upstream/origin/origin_registry.h"

#include <algorithm>
#include <utility>

#include "metrics/registry.h"
#include "pool/directory/directory.h"
#include "proxy/upstream/fd_budget.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/origin_limits.h"
#include "proxy/upstream/origin/parent_choice.h"
#include "proxy/upstream/origin/received_via.h"

namespace carpool::proxy {

namespace {
net::AddressRules rules_of(const config::Addresses& settings) {
  return {settings.eject_after,
          settings.eject_time,
          settings.gone_after,
          settings.retire_every,
          settings.balance == config::Balance::least_loaded,
          settings.slow_start};
}

constexpr std::uint32_t kYieldsPerSecond = 10;
constexpr std::size_t kMaxVersions = 1000;  // versions of the settings of one origin

std::string key_of(const pool::Origin& origin) {
  return origin.label();
}

// A v4-mapped address leads to the IPv4 address, although it is another host for TLS.
bool same_host(const pool::Origin& a, const pool::Origin& b) {
  if (a.host == b.host) return true;
  const auto first = net::Address::literal(a.host, a.port), second = net::Address::literal(b.host, b.port);
  return first && second && first->unmapped() == second->unmapped();
}
}  // namespace

void FreeReceivedVia::operator()(ReceivedVia* via) const {
  const std::unique_ptr<ReceivedVia> ended(via);
}

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

Result<OriginRegistry::Prepared> OriginRegistry::prepare(config::Config& fresh) {
  Prepared prepared;
  most_ = kMaxLeft + fresh.origins.size();
  const std::size_t known = identities_.size();
  if (Status numbered = number_origins(fresh, prepared); !numbered) return numbered.take_fault();
  const std::vector<bool> used = in_use(fresh, prepared);
  if (Status renewed = renew_identities(known, used, prepared); !renewed) return renewed.take_fault();
  if (Status found = find_parents(used, prepared); !found) return found.take_fault();
  for (const config::OriginSettings& settings : fresh.origins) {
    if (settings.headers.empty() && settings.oauth2.token_url.empty()) continue;
    Result<Credentials*> credentials = credentials_of(settings);
    if (!credentials) return credentials.take_fault();
    prepared.credentials.emplace(settings.origin.label(), *credentials);
  }
  return prepared;
}

// Equal settings keep one object, so that the runtime is found again if its settings return.
Result<Credentials*> OriginRegistry::credentials_of(const config::OriginSettings& settings) {
  for (const std::unique_ptr<Credentials>& known : made_credentials_) {
    if (!known->made_of(settings)) continue;
    // Files of credentials that were not in force have not been read. CredentialFiles reads and reports the others.
    if (!in_force(*known)) static_cast<void>(known->check_files());
    return known.get();
  }
  if (made_credentials_.size() >= most_) {
    return Fault{FaultKind::budget, Side::self,
                 "too many different credentials of origins since the start; restart carpool"};
  }
  Result<std::unique_ptr<Credentials>> made = Credentials::make(settings, loops_);
  if (!made) return made.take_fault();
  return made_credentials_.emplace_back(std::move(*made)).get();
}

bool OriginRegistry::in_force(const Credentials& credentials) const {
  const Held lock(mutex_);
  const auto found = credentials_.find(credentials.label());
  return found != credentials_.end() && found->second == &credentials;
}

std::vector<Credentials*> OriginRegistry::all_credentials() const {
  const Held lock(mutex_);
  std::vector<Credentials*> all;
  for (const auto& [label, credentials] : credentials_) all.push_back(credentials);
  return all;
}

std::vector<std::string> OriginRegistry::apply(const config::Config& fresh, Prepared&& prepared) {
  for (auto& [identity, context] : prepared.renewed) identity->replace(std::move(context));
  const Held lock(mutex_);
  config_ = &fresh;
  leak_timeout_ = shortest_leak_timeout(fresh);
  defaults_ = prepared.defaults;
  for (std::size_t i = 0; i < prepared.parents.size(); ++i) identities_[i].parent = prepared.parents[i];
  credentials_ = std::move(prepared.credentials);
  configured_.clear();
  aliases_.clear();
  const auto ended = directory_->replaced();
  for (const config::OriginSettings& settings : fresh.origins) {
    configured_.emplace(key_of(settings.origin), &settings);
    for (const std::string& alias : settings.alias) aliases_.emplace(alias, &settings);
    if (!counts_as_other(key_of(settings.origin), ended)) metrics_.keep_origin(key_of(settings.origin));
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
      if ((*made)->destination != current->destination) (*made)->destination->take_over_pauses(*current->destination);
      current = *made;
      current->reported.store(false, std::memory_order_relaxed);  // the new rules may differ
    } else {
      behind.push_back(label + ": " + made.fault().detail);
    }
  }
  keep_ready(fresh, behind);
  return behind;
}

// Returns true if pools of this origin are part of the sum "other". With a label of its own their counters would leave
// the sum, and no counter may fall. `ended`: the totals of pools that reloads have replaced.
bool OriginRegistry::counts_as_other(const std::string& label,
                                     const std::map<std::string, pool::Destination::Snapshot>& ended) const {
  return metrics_.slot_of(label) == metrics::kOtherOrigin && (versions_.contains(label) || ended.contains(label));
}

// Makes the pools of origins with min_idle, which open connections without a request: see Destination::sweep().
void OriginRegistry::keep_ready(const config::Config& fresh, std::vector<std::string>& behind) {
  for (const config::OriginSettings& settings : fresh.origins) {
    const std::string key = key_of(settings.origin);
    if (settings.pool.min_idle == 0 || contexts_.count(key) != 0) continue;
    Result<OriginRuntime*> made = version_of(settings.origin);
    if (made) {
      contexts_.emplace(key, *made);
    } else {
      behind.push_back(key + ": " + made.fault().detail);
    }
  }
}

void OriginRegistry::apply_limits(Instant now) {
  const config::Config* config = nullptr;
  std::vector<OriginRuntime*> known;
  {
    const Held lock(mutex_);
    config = config_;
    known = contexts_of_pools();
  }
  for (const OriginRuntime* context : known) {
    pool::Destination& destination = *context->destination;
    if (destination.reclaimed()) continue;
    pool::Limits limits = limits_of(context->pool, destination.origin().scheme, context->protocols, *config);
    limits.replaced = context->is_replaced();
    if (limits.replaced) limits.min_idle = 0;
    destination.set_limits(limits, now);
  }
}

// ---- one origin ----

const config::OriginSettings* OriginRegistry::settings_of(const pool::Origin& origin) const {
  const auto found = configured_.find(key_of(origin));
  return found == configured_.end() ? nullptr : found->second;
}

const config::OriginSettings* OriginRegistry::alias(const std::string& host) const {
  const Held lock(mutex_);
  const auto found = aliases_.find(host);
  return found == aliases_.end() ? nullptr : found->second;
}

namespace {
// Takes the values that only an [[origin]] section has; they were validated with the configuration.
void use_section(OriginRuntime& runtime, const config::OriginSettings& settings) {
  runtime.streaming = settings.profile == config::Profile::streaming;
  runtime.allow = settings.allow;
  for (const std::string& text : settings.allow) {
    Result<http::RequestRule> rule = http::RequestRule::parse(text);
    if (rule) runtime.rules.push_back(std::move(*rule));
  }
  for (const std::string& text : settings.addresses) {
    const Result<net::Address> address = net::Address::parse(text);
    if (address) runtime.pinned.push_back(*address);
  }
}
}  // namespace

std::unique_ptr<OriginRuntime> OriginRegistry::describe(const pool::Origin& origin) const {
  auto runtime = std::make_unique<OriginRuntime>();
  const config::OriginSettings* settings = settings_of(origin);
  runtime->pool = settings != nullptr ? settings->pool : config_->pool;
  runtime->request = settings != nullptr ? settings->request : config_->request;
  // Burst: the number of requests that are lost if all connections, or one session with all its streams, fail together.
  runtime->retries.open(std::max(runtime->pool.largest(), runtime->pool.max_streams), runtime->request.retry_budget);
  runtime->retry_on = RetryConditions(runtime->request.retry_on);
  runtime->requests.open(runtime->request.rate, runtime->request.rate_burst);
  runtime->connects.open(runtime->pool.connect_rate, runtime->pool.connect_burst);
  runtime->yields.open(kYieldsPerSecond, 1);
  runtime->authority = origin.authority();
  runtime->protocols = protocols_of(settings != nullptr ? settings->upstream : config_->upstream, origin.scheme);
  if (origin.scheme == pool::Scheme::https) runtime->tls = identities_[origin.tls].tls.get();
  runtime->parent = identities_[identity_number(origin)].parent;
  const bool absolute = origin.scheme == pool::Scheme::http && !runtime->protocols.h2;
  if (runtime->parent != nullptr && absolute) runtime->absolute = origin.label();
  if (runtime->through_connect()) runtime->received_via.reset(std::make_unique<ReceivedVia>().release());
  // The requests inside a tunnel are not visible to the rules, and another scheme leads to the same place.
  runtime->restricted = settings != nullptr ? !settings->allow.empty() : is_place_of_rules(origin);
  if (settings == nullptr) return runtime;
  use_section(*runtime, *settings);
  if (const auto own = credentials_.find(key_of(origin)); own != credentials_.end()) runtime->credentials = own->second;
  return runtime;
}

// Returns true for the host and port of an origin with rules, by CONNECT, by another scheme, or by the other spelling
// of an IPv4 address.
bool OriginRegistry::is_place_of_rules(const pool::Origin& origin) const {
  return std::any_of(config_->origins.begin(), config_->origins.end(), [&](const config::OriginSettings& settings) {
    return !settings.allow.empty() && settings.origin.port == origin.port && same_host(settings.origin, origin);
  });
}

// Returns the context for the configuration in force. Creates one only if no equal one exists.
Result<OriginRuntime*> OriginRegistry::version_of(pool::Origin origin) {
  origin.tls = identity_number(origin);
  std::unique_ptr<OriginRuntime> context = describe(origin);
  const pool::Limits limits = limits_of(context->pool, origin.scheme, context->protocols, *config_);
  const pool::Listing listing = settings_of(origin) != nullptr ? pool::Listing::configured : pool::Listing::unlisted;
  Result<pool::Destination*> destination = directory_->at(origin, limits, Clock::now(), listing);
  if (!destination) return destination.take_fault();
  context->destination = *destination;
  (*destination)->use_again();
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
    if (const auto before = contexts_.find(key_of(origin)); before != contexts_.end()) context->follow(*before->second);
    known = versions.insert(versions.end(), std::move(context));
  }
  by_destination_[*destination] = known->get();
  for (const Context& one : versions) {
    const bool current = one->destination == *destination;
    one->replaced.store(!current, std::memory_order_relaxed);
    directory_->set_listing(*one->destination, current ? listing : pool::Listing::unlisted);
  }
  return known->get();
}

std::vector<pool::Destination*> OriginRegistry::retire_idle(Instant now, Duration unused) {
  // The mutex is not held throughout: releasing a slot may make another pool dial, which calls this registry.
  std::vector<pool::Destination*> retired =
      directory_->unlink_idle(now, unused, [&](const pool::Destination& destination) {
        const Held lock(mutex_);
        const config::OriginSettings* settings = settings_of(destination.origin());
        return settings != nullptr && settings->origin.tls == destination.origin().tls;
      });
  const Held lock(mutex_);
  for (const pool::Destination* destination : retired) {
    const auto current = contexts_.find(destination->label());
    if (current != contexts_.end() && current->second->destination == destination) contexts_.erase(current);
  }
  return retired;
}

// An address is not reported and a context not used after the pool is destroyed, because their users are gone. Until
// then its connections still decrement the counts of their AddressSet.
bool OriginRegistry::destroy(const std::vector<pool::Destination*>& retired) {
  const Held lock(mutex_);
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
  // Called without the mutex: a connection that ends may start a dial elsewhere, which calls this registry.
  if (!directory_->make_room(Clock::now())) return found;
  return at(origin);
}

Result<OriginRuntime*> OriginRegistry::at(const pool::Origin& origin) {
  const std::string key = key_of(origin);
  const Held lock(mutex_);
  if (const auto found = contexts_.find(key); found != contexts_.end() && !found->second->destination->reclaimed()) {
    found->second->destination->touch(Clock::now());
    return found->second;
  }
  Result<OriginRuntime*> made = version_of(origin);
  if (made) contexts_.insert_or_assign(key, *made);
  return made;
}

OriginRuntime* OriginRegistry::of(const pool::Destination& destination) const {
  const Held lock(mutex_);
  const auto found = by_destination_.find(&destination);
  return found == by_destination_.end() ? nullptr : found->second;
}

std::vector<OriginRuntime*> OriginRegistry::all() const {
  const Held lock(mutex_);
  std::vector<OriginRuntime*> all;
  for (const auto& [key, context] : contexts_) all.push_back(context);
  return all;
}

// The order does not depend on the addresses of the pools.
std::vector<OriginRuntime*> OriginRegistry::contexts_of_pools() const {
  std::vector<OriginRuntime*> found;
  for (const auto& [label, versions] : versions_) {
    for (const Context& one : versions) {
      const auto current = by_destination_.find(one->destination);
      if (current != by_destination_.end() && current->second == one.get()) found.push_back(one.get());
    }
  }
  return found;
}

bool OriginRegistry::apply_policy(const net::AddressPolicy& policy) {
  const Held lock(mutex_);
  bool found = false;
  for (const auto& [destination, context] : by_destination_) {
    if (context->parent == nullptr) found |= context->address_set->apply_policy(policy, destination->origin());
  }
  return found;
}

std::vector<OriginRuntime*> OriginRegistry::outdated(const std::vector<const TlsIdentity*>& renewed) const {
  const Held lock(mutex_);
  std::vector<OriginRuntime*> found;
  for (OriginRuntime* context : contexts_of_pools()) {
    const pool::Destination* const destination = context->destination;
    const bool listed =
        context->tls != nullptr && std::find(renewed.begin(), renewed.end(), context->tls) != renewed.end();
    // A reclaimed destination may be destroyed before this loop has finished with it; the others wait for this loop.
    if (destination->reclaimed()) continue;
    if (listed || context->address_set->has_forbidden()) found.push_back(context);
  }
  return found;
}

}  // namespace carpool::proxy
