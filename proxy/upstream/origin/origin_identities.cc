// OriginRegistry, identities: numbers for the settings under which origins are reached, and their parent proxies.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proxy/upstream/origin/origin_registry.h"
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
}  // namespace

// Equal settings keep one number forever, so that a pool is found again if its settings return. Without TLS only the
// protocols, the leniencies and the parent proxy distinguish two origins.
Result<std::uint32_t> OriginRegistry::number_of(pool::Scheme scheme, const config::Upstream& upstream,
                                                bool through_parent) {
  config::Upstream key = settings_without_choice(upstream, through_parent);
  if (scheme != pool::Scheme::https) key.tls = {};
  for (std::size_t i = 0; i < identities_.size(); ++i) {
    if (identities_[i].upstream == key) return static_cast<std::uint32_t>(i);
  }
  if (identities_.size() >= most_) {
    return Fault{FaultKind::budget, Side::self,
                 "too many different [upstream] settings since the start; restart carpool"};
  }
  auto identity = std::make_unique<TlsIdentity>(tls_settings(key));
  // Files that the configuration names must be valid now. The system's bundle is read when an origin needs it.
  if (!key.tls.ca_file.empty() || !key.tls.cert_file.empty()) {
    if (Status loaded = identity->load(); !loaded) return loaded.take_fault();
  }
  const Held lock(mutex_);
  identities_.push_back({std::move(key), std::move(identity), nullptr});
  return static_cast<std::uint32_t>(identities_.size() - 1);
}

Status OriginRegistry::number_origins(config::Config& fresh, Prepared& prepared) {
  for (const bool direct : {false, true}) {
    for (const pool::Scheme scheme : {pool::Scheme::https, pool::Scheme::http}) {
      Result<std::uint32_t> number = number_of(scheme, fresh.upstream, !direct);
      if (!number) return number.take_fault();
      (scheme == pool::Scheme::https ? prepared.defaults.https : prepared.defaults.http).at(direct ? 1 : 0) = *number;
    }
  }
  for (config::OriginSettings& settings : fresh.origins) {
    const bool through_parent = goes_through_parent(settings.upstream, settings.origin, !settings.addresses.empty());
    Result<std::uint32_t> number = number_of(settings.origin.scheme, settings.upstream, through_parent);
    if (!number) return number.take_fault();
    settings.origin.tls = *number;
  }
  return Done{};
}

// Returns, per identity, whether `fresh` names its settings. The files of the others may be gone.
std::vector<bool> OriginRegistry::in_use(const config::Config& fresh, const Prepared& prepared) const {
  std::vector<bool> used(identities_.size());
  for (const auto& numbers : {prepared.defaults.http, prepared.defaults.https}) {
    for (const std::uint32_t number : numbers) used[number] = true;
  }
  for (const config::OriginSettings& settings : fresh.origins) used[settings.origin.tls] = true;
  return used;
}

// Reads the TLS files of the first `known` identities again; those of the later ones have just been read. An identity
// that is not in use may still serve requests of a replaced pool: it is renewed if its files can be read, and neither
// refuses the configuration nor counts as a change of it.
Status OriginRegistry::renew_identities(std::size_t known, const std::vector<bool>& used, Prepared& prepared) {
  for (std::size_t i = 0; i < known; ++i) {
    const Identity& identity = identities_[i];
    auto renewed = identity.tls->renew();
    if (!renewed && used[i]) return renewed.take_fault();
    if (!renewed || !*renewed) continue;
    prepared.renewed.emplace_back(identity.tls.get(), std::move(*renewed));
    if (!used[i]) continue;
    const config::Tls& tls = identity.upstream.tls;
    for (const std::string& file : {tls.ca_file, tls.cert_file}) {
      if (!file.empty()) prepared.files.push_back(file);
    }
    if (tls.ca_file.empty() && tls.verify) prepared.files.emplace_back("the system's certificate authorities");
  }
  return Done{};
}

// Reads the credentials of parent proxies again, because their files may have changed. Settings that are no longer in
// use keep theirs, because their files may be gone.
Status OriginRegistry::find_parents(const std::vector<bool>& used, Prepared& prepared) {
  for (std::size_t i = 0; i < identities_.size(); ++i) {
    Result<const net::ParentProxy*> parent = known_parent(identities_[i].upstream);
    if (!parent && used[i]) return parent.take_fault();
    const bool replaced = parent && used[i] && identities_[i].parent != nullptr && identities_[i].parent != *parent;
    const std::string& file = identities_[i].upstream.proxy_credentials.file;
    const bool named = std::find(prepared.files.begin(), prepared.files.end(), file) != prepared.files.end();
    if (replaced && !file.empty() && !named) prepared.files.push_back(file);
    prepared.parents.push_back(parent ? *parent : identities_[i].parent);
  }
  return Done{};
}

Result<const net::ParentProxy*> OriginRegistry::known_parent(const config::Upstream& upstream) {
  if (upstream.proxy.empty()) return static_cast<const net::ParentProxy*>(nullptr);
  Result<net::ParentProxy> read = parent_of(upstream);
  if (!read) return read.take_fault();
  for (const std::unique_ptr<const net::ParentProxy>& known : made_parents_) {
    if (known->place == read->place && known->authorization == read->authorization) return known.get();
  }
  if (made_parents_.size() >= most_) {
    return Fault{FaultKind::budget, Side::self,
                 "too many different credentials of upstream.proxy since the start; restart carpool"};
  }
  return made_parents_.emplace_back(std::make_unique<const net::ParentProxy>(std::move(*read))).get();
}

// Returns the number of the settings under which the origin is reached.
std::uint32_t OriginRegistry::identity_number(const pool::Origin& origin) const {
  if (const config::OriginSettings* settings = settings_of(origin)) return settings->origin.tls;
  const std::size_t direct = goes_through_parent(config_->upstream, origin, false) ? 0 : 1;
  return (origin.scheme == pool::Scheme::https ? defaults_.https : defaults_.http).at(direct);
}

bool OriginRegistry::through_parent(const pool::Origin& origin) const {
  const Held lock(mutex_);
  return identities_[identity_number(origin)].parent != nullptr;
}

}  // namespace carpool::proxy
