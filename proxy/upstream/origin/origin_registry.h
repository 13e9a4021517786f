// OriginRegistry: the data of the proxy about each origin, besides its pool: settings, TLS identity, pinned addresses,
// metrics. It outlives the loops, and an OriginRuntime lives as long as its pool, so loops keep plain pointers. If a
// reload changes an origin, the origin gets a new OriginRuntime; users of the old one finish with the old one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/net/address_set.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/origin/tls_identity.h"

namespace carpool::metrics {
class Registry;
}

namespace carpool::pool {
class Directory;
class Environment;
}  // namespace carpool::pool

namespace carpool::proxy {

class OriginRegistry {
 public:
  // Loads every TLS file that the configuration names. Blocks; must be called before the loops run.
  static Result<std::unique_ptr<OriginRegistry>> make(config::Config& config, pool::Environment& server,
                                                      metrics::Registry& metrics);
  ~OriginRegistry();

  // Returns the runtime of `origin`; fills in its TLS identity from the configuration. Takes a mutex: loops cache the
  // result.
  Result<OriginRuntime*> at(const pool::Origin& origin);
  // Like at(), for a request: if the registry is full, replaces the least recently used origin that no [[origin]]
  // names. Must be called on a worker's loop.
  Result<OriginRuntime*> enter(const pool::Origin& origin);
  // Returns the runtime of a destination that at() created; callable on any thread.
  OriginRuntime* of(const pool::Destination& destination) const;
  std::vector<OriginRuntime*> all() const;
  // Must be called after the rules for addresses changed. Returns true if a connection leads to an address that they
  // do not permit any more. The rules do not apply to a parent proxy.
  bool apply_policy(const net::AddressPolicy& policy);
  // Returns the runtimes with one of these TLS identities or with connections to forbidden addresses, including those
  // of pools that a reload has replaced.
  std::vector<OriginRuntime*> outdated(const std::vector<const TlsIdentity*>& renewed) const;
  // Identities, parent proxies and credentials that earlier configurations may have left, each: over the life of the
  // process, besides those of the configuration, which names at most one of each per origin.
  static constexpr std::size_t kMaxLeft = 1000;
  // Returns true if a parent proxy resolves the name of this origin. Any thread.
  bool through_parent(const pool::Origin& origin) const;
  // Defaults: the identities of origins without their own settings; the second ones are for origins without a parent
  // proxy.
  struct Defaults {
    std::array<std::uint32_t, 2> http{}, https{};
  };
  // Loads the files that `fresh` needs and sets the TLS identities of its origins. Blocks, so it must not run on a
  // loop; must not be called concurrently. If it returns a Fault, nothing in force has changed.
  struct Prepared {
    std::vector<std::pair<TlsIdentity*, std::shared_ptr<tls::ClientContext>>> renewed;
    std::vector<std::string> files;                // files of the renewed identities that `fresh` uses
    std::vector<const net::ParentProxy*> parents;  // parent proxies of the identities
    Defaults defaults;
    std::unordered_map<std::string, Credentials*> credentials;  // by label
  };
  Result<Prepared> prepare(config::Config& fresh);
  // Puts `fresh` in force. An origin whose settings changed gets a new runtime, and a new pool only if its TLS identity
  // changed; other origins are not touched. `fresh` must outlive the registry; loops use the previous configuration
  // until their turn ends. Returns the origins that could not be updated.
  std::vector<std::string> apply(const config::Config& fresh, Prepared&& prepared);

  // Unlinks the origins that no [[origin]] names and no request used for `unused`. When no loop uses them any more,
  // destroy() must follow; it returns false, and must be called again, while the pools are being iterated. Both must be
  // called on the first worker's loop.
  std::vector<pool::Destination*> retire_idle(Instant now, Duration unused);
  bool destroy(const std::vector<pool::Destination*>& retired);

  // Returns the credentials in force, which live as long as the registry. Any thread.
  std::vector<Credentials*> all_credentials() const;

  // Returns the shortest pool.leak_timeout in force; zero: no origin has one. Any thread.
  Duration leak_timeout() const {
    const Held lock(mutex_);
    return leak_timeout_;
  }

  // Sets the pools' limits to those in force; replaced pools keep no idle connections ready any more. Must be called on
  // the first worker's loop after apply().
  void apply_limits(Instant now);

  // Returns the [[origin]] that lists this canonical host as an alias, or nullptr. Valid until the loop's turn ends.
  const config::OriginSettings* alias(const std::string& host) const;
  pool::Directory& directory() { return *directory_; }

 private:
  struct Identity {
    config::Upstream upstream;
    std::unique_ptr<TlsIdentity> tls;
    const net::ParentProxy* parent = nullptr;
  };
  using Context = std::unique_ptr<OriginRuntime>;
  OriginRegistry(const config::Config& config, metrics::Registry& metrics);
  Result<std::uint32_t> number_of(pool::Scheme scheme, const config::Upstream& upstream, bool through_parent);
  Result<const net::ParentProxy*> known_parent(const config::Upstream& upstream);
  Status number_origins(config::Config& fresh, Prepared& prepared);
  std::vector<bool> in_use(const config::Config& fresh, const Prepared& prepared) const;
  Status renew_identities(std::size_t known, const std::vector<bool>& used, Prepared& prepared);
  Status find_parents(const std::vector<bool>& used, Prepared& prepared);
  Result<Credentials*> credentials_of(const config::OriginSettings& settings);
  bool in_force(const Credentials& credentials) const;
  bool is_place_of_rules(const pool::Origin& origin) const REQUIRES(mutex_);
  std::unique_ptr<OriginRuntime> describe(const pool::Origin& origin) const REQUIRES(mutex_);
  Result<OriginRuntime*> version_of(pool::Origin origin) REQUIRES(mutex_);
  bool counts_as_other(const std::string& label, const std::map<std::string, pool::Destination::Snapshot>& ended) const
      REQUIRES(mutex_);
  void keep_ready(const config::Config& fresh, std::vector<std::string>& behind) REQUIRES(mutex_);
  const config::OriginSettings* settings_of(const pool::Origin& origin) const REQUIRES(mutex_);
  std::uint32_t identity_number(const pool::Origin& origin) const REQUIRES(mutex_);
  std::vector<OriginRuntime*> contexts_of_pools() const REQUIRES(mutex_);  // the latest one of each pool

  metrics::Registry& metrics_;
  const unsigned loops_;
  std::size_t most_ = kMaxLeft;  // of identities_, made_parents_ and made_credentials_, each; only prepare() uses it
  // Only prepare() and apply() write the first three members. They are not called concurrently, and write identities_
  // under the mutex; other threads read identities_ under the mutex.
  std::vector<Identity> identities_;                                   // indexed by Origin::tls; only grows
  std::vector<std::unique_ptr<const net::ParentProxy>> made_parents_;  // only grows
  std::vector<std::unique_ptr<Credentials>> made_credentials_;         // only grows
  mutable Mutex mutex_;
  const config::Config* config_ GUARDED_BY(mutex_);
  Duration leak_timeout_ GUARDED_BY(mutex_) = Duration::zero();
  Defaults defaults_ GUARDED_BY(mutex_);  // identities of [upstream]
  std::unordered_map<std::string, const config::OriginSettings*> configured_ GUARDED_BY(mutex_);  // by label
  std::unordered_map<std::string, const config::OriginSettings*> aliases_ GUARDED_BY(mutex_);     // by canonical host
  std::unordered_map<std::string, Credentials*> credentials_ GUARDED_BY(mutex_);                  // in force, by label
  std::unordered_map<std::string, OriginRuntime*> contexts_ GUARDED_BY(mutex_);                   // in force, by label
  std::unordered_map<std::string, std::vector<Context>> versions_
      GUARDED_BY(mutex_);  // distinct contexts whose pool exists
  std::unordered_map<const pool::Destination*, OriginRuntime*> by_destination_ GUARDED_BY(mutex_);
  std::unordered_map<const pool::Destination*, std::unique_ptr<net::AddressSet>> address_sets_ GUARDED_BY(mutex_);
  std::unique_ptr<pool::Directory> directory_;  // last member: destroyed first, while the contexts still exist
};

}  // namespace carpool::proxy
