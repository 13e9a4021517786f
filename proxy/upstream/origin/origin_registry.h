// Origins: what the proxy knows of each origin besides its pool: settings, TLS identity, pinned addresses, metrics.
// Never destroyed while loops run, so that loops keep plain pointers: after a reload an origin has another context, and
// whoever has the old one finishes by it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "metrics/registry.h"
#include "pool/destination/destination.h"
#include "pool/directory/directory.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/net/address.h"
#include "proxy/net/address_set.h"
#include "proxy/upstream/origin/connect_cost.h"
#include "proxy/upstream/origin/rate_limiter.h"
#include "proxy/upstream/origin/retry_budget.h"
#include "proxy/upstream/origin/tls_identity.h"

namespace carpool::proxy {

// What may be spoken with an origin, of upstream.protocols and upstream.lenient.
struct Speaks {
  bool h1 = true;
  bool h2 = false;
  bool bare_lf = false;  // upstream.lenient
  bool operator==(const Speaks&) const = default;
};

// One origin under one configuration. Immutable after it was made, but for what says that it guards itself.
struct OriginContext {
  pool::Destination* destination = nullptr;
  config::PoolSettings pool;
  config::Request request;
  std::string authority;       // Host for this origin
  TlsIdentity* tls = nullptr;  // null: plain text
  Speaks speaks;
  std::vector<net::Address> pinned;
  std::atomic<std::uint32_t> dials{0};  // in progress, all loops together; relaxed: a hint for deadlines
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  net::AddressBook* book = nullptr;  // guards itself; one per destination
  DialCost dial_cost;                // guards itself
  mutable RetryBudget retries;       // guards itself
  RateLimit requests, connects;      // each guards itself

  bool dialing() const { return dials.load(std::memory_order_relaxed) != 0; }
  bool same(const OriginContext& other) const {
    return destination == other.destination && pool == other.pool && request == other.request && tls == other.tls &&
           speaks == other.speaks && pinned == other.pinned;
  }
};

class Origins {
 public:
  // Loads every TLS file that the configuration names: blocking, before the loops run.
  static Result<std::unique_ptr<Origins>> make(config::Config& config, pool::House& house, metrics::Registry& metrics);
  ~Origins();

  // The context of `origin`; its TLS identity is filled in from the configuration. Takes a mutex: loops cache the
  // answer.
  Result<OriginContext*> at(const pool::Origin& origin);
  // As at(), for a request: where no place is left it takes the one of the origin that was used least recently, if no
  // [[origin]] names that. Must be called on a worker's loop.
  Result<OriginContext*> enter(const pool::Origin& origin);
  // Of a destination made by at(); any thread.
  OriginContext* of(const pool::Destination& destination) const;
  std::vector<OriginContext*> all() const;
  // Those with one of these TLS identities, whose pools may be out of force already.
  std::vector<OriginContext*> under(const std::vector<const TlsIdentity*>& identities) const;
  // What must be loaded before `fresh` can be in force, and what its origins' TLS identities are called: blocking, off
  // the loops, one at a time. A Fault: it cannot be, and nothing has changed.
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
  // worker's loop, as bury(): when no loop knows them any more; false: somebody looks through the pools.
  std::vector<pool::Destination*> retire_idle(Instant now, Duration unused);
  bool bury(const std::vector<pool::Destination*>& retired);

  // On a worker's loop, after apply(): pools get the limits that are in force now.
  void follow_limits(Instant now);

  // The [[origin]] that lists this canonical host as an alias, or null. Good for this turn of the loop.
  const config::OriginSettings* alias(const std::string& host) const;
  pool::Directory& directory() { return *directory_; }

 private:
  struct Identity {
    config::Upstream upstream;
    std::unique_ptr<TlsIdentity> tls;
  };
  using Context = std::unique_ptr<OriginContext>;
  Origins(const config::Config& config, metrics::Registry& metrics);
  Result<std::uint32_t> number_of(pool::Scheme scheme, const config::Upstream& upstream);
  std::unique_ptr<OriginContext> describe(const pool::Origin& origin) const;
  Result<OriginContext*> version_of(pool::Origin origin);
  const config::OriginSettings* settings_of(const pool::Origin& origin) const;
  std::uint32_t tls_number(const pool::Origin& origin) const;

  metrics::Registry& metrics_;
  mutable std::mutex mutex_;  // guards all below but directory_
  const config::Config* config_;
  std::vector<Identity> identities_;                                           // by Origin::tls; only grows
  std::uint32_t default_http_ = 0, default_https_ = 0;                         // the numbers of what [upstream] says
  std::unordered_map<std::string, const config::OriginSettings*> configured_;  // by label
  std::unordered_map<std::string, const config::OriginSettings*> aliases_;     // by canonical host
  std::unordered_map<std::string, OriginContext*> contexts_;                   // in force, by label
  std::unordered_map<std::string, std::vector<Context>> versions_;             // all there ever were, each once
  std::unordered_map<const pool::Destination*, OriginContext*> by_destination_;
  std::unordered_map<const pool::Destination*, std::unique_ptr<net::AddressBook>> books_;
  std::unique_ptr<pool::Directory> directory_;  // last: ends first, while contexts still stand
};

}  // namespace carpool::proxy
