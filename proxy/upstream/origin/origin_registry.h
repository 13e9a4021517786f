// OriginRegistry: the proxy's data about each origin besides its pool: settings, TLS identity, pinned addresses,
// metrics. Never destroyed while loops run, so that loops keep plain pointers. A reload gives an origin a new context,
// and users of the old one finish with that.
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

  // Returns the runtime of `origin`; fills in its TLS identity from the configuration. Takes a mutex: loops cache the
  // result.
  Result<OriginRuntime*> at(const pool::Origin& origin);
  // Like at(), for a request: if the registry is full, it replaces the least recently used origin that no [[origin]]
  // names. Must be called on a worker's loop.
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
  // Puts `fresh` in force: origins that it changes get a new context (a new pool only if their TLS identity changed),
  // the others are not touched. `fresh` must outlive the registry; loops use the previous one until their turn ends.
  // Returns the origins that could not be updated.
  std::vector<std::string> apply(const config::Config& fresh, Prepared&& prepared);

  // Unlinks the origins that no [[origin]] names and no request used since `unused`. On the first worker's loop, like
  // destroy(), which must follow when no loop uses them any more; false: the pools are being iterated.
  std::vector<pool::Destination*> retire_idle(Instant now, Duration unused);
  bool destroy(const std::vector<pool::Destination*>& retired);

  // Must be called on a worker's loop after apply(): sets the pools' limits that are now in force.
  void apply_limits(Instant now);

  // Returns the [[origin]] that lists this canonical host as an alias, or nullptr. Valid for this turn of the loop.
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
  mutable std::mutex mutex_;  // guards everything below except directory_
  const config::Config* config_;
  std::vector<Identity> identities_;                                           // by Origin::tls; only grows
  std::uint32_t default_http_ = 0, default_https_ = 0;                         // the numbers of [upstream]
  std::unordered_map<std::string, const config::OriginSettings*> configured_;  // by label
  std::unordered_map<std::string, const config::OriginSettings*> aliases_;     // by canonical host
  std::unordered_map<std::string, OriginRuntime*> contexts_;                   // in force, by label
  std::unordered_map<std::string, std::vector<Context>> versions_;             // all that ever existed, each once
  std::unordered_map<const pool::Destination*, OriginRuntime*> by_destination_;
  std::unordered_map<const pool::Destination*, std::unique_ptr<net::AddressSet>> books_;
  std::unique_ptr<pool::Directory> directory_;  // last member: destroyed first, while the contexts still exist
};

}  // namespace carpool::proxy
