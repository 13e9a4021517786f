// OriginRegistry: what the proxy knows of each origin besides its pool: settings, TLS identity, pinned addresses,
// metrics. Never destroyed while loops run, so that loops keep plain pointers: after a reload an origin has another
// context, and whoever has the old one finishes by it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pool/directory/directory.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/net/address_set.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/origin/tls_identity.h"

namespace carpool::proxy {

class OriginRegistry {
 public:
  // Loads every TLS file that the configuration names: blocking, before the loops run.
  static Result<std::unique_ptr<OriginRegistry>> make(config::Config& config, pool::Environment& server,
                                                      metrics::Registry& metrics);
  ~OriginRegistry();

  // The context of `origin`; its TLS identity is filled in from the configuration. Takes a mutex: loops cache the
  // answer.
  Result<OriginRuntime*> at(const pool::Origin& origin);
  // As at(), for a request: where no place is left it takes the one of the origin that was used least recently, if no
  // [[origin]] names that. Must be called on a worker's loop.
  Result<OriginRuntime*> enter(const pool::Origin& origin);
  // Returns the runtime of a destination that at() created; callable on any thread.
  OriginRuntime* of(const pool::Destination& destination) const;
  std::vector<OriginRuntime*> all() const;
  // Those with one of these TLS identities, whose pools may be out of force already.
  std::vector<OriginRuntime*> under(const std::vector<const TlsIdentity*>& identities) const;
  // Loads what `fresh` needs before it can be in force, and the TLS identities of its origins: blocking, off the loops,
  // one call at a time. Returns a Fault if that fails; nothing has changed then.
  struct Prepared {
    std::vector<std::pair<TlsIdentity*, std::shared_ptr<tls::ClientContext>>> renewed;
    std::vector<std::string> files;  // of those
    std::uint32_t default_http = 0, default_https = 0;
  };
  Result<Prepared> prepare(config::Config& fresh);
  // Puts it in force: origins that it changes get another context (another pool only where their TLS identity changed),
  // the others are not touched. `fresh` outlives it; loops look into the one before until their turn ends. Names those
  // that could not follow.
  std::vector<std::string> apply(const config::Config& fresh, Prepared&& prepared);

  // Those that no [[origin]] names and nobody asked for since `unused`: from now on nobody finds them. On the first
  // worker's loop, as destroy(): when no loop knows them any more; false: somebody looks through the pools.
  std::vector<pool::Destination*> retire_idle(Instant now, Duration unused);
  bool destroy(const std::vector<pool::Destination*>& retired);

  // On a worker's loop, after apply(): pools get the limits that are in force now.
  void apply_limits(Instant now);

  // The [[origin]] that lists this canonical host as an alias, or null. Good for this turn of the loop.
  const config::OriginSettings* alias(const std::string& host) const;
  pool::Directory& directory() { return *directory_; }

 private:
  struct Identity {
    config::Upstream upstream;
    std::unique_ptr<TlsIdentity> tls;
  };
  using Context = std::unique_ptr<OriginRuntime>;
  OriginRegistry(const config::Config& config, metrics::Registry& metrics);
  Result<std::uint32_t> number_of(pool::Scheme scheme, const config::Upstream& upstream);
  std::unique_ptr<OriginRuntime> describe(const pool::Origin& origin) const;
  Result<OriginRuntime*> version_of(pool::Origin origin);
  const config::OriginSettings* settings_of(const pool::Origin& origin) const;
  std::uint32_t tls_number(const pool::Origin& origin) const;

  metrics::Registry& metrics_;
  mutable std::mutex mutex_;  // guards all below but directory_
  const config::Config* config_;
  std::vector<Identity> identities_;                                           // by Origin::tls; only grows
  std::uint32_t default_http_ = 0, default_https_ = 0;                         // the numbers of what [upstream] says
  std::unordered_map<std::string, const config::OriginSettings*> configured_;  // by label
  std::unordered_map<std::string, const config::OriginSettings*> aliases_;     // by canonical host
  std::unordered_map<std::string, OriginRuntime*> contexts_;                   // in force, by label
  std::unordered_map<std::string, std::vector<Context>> versions_;             // all there ever were, each once
  std::unordered_map<const pool::Destination*, OriginRuntime*> by_destination_;
  std::unordered_map<const pool::Destination*, std::unique_ptr<net::AddressSet>> books_;
  std::unique_ptr<pool::Directory> directory_;  // last: ends first, while contexts still stand
};

}  // namespace carpool::proxy
