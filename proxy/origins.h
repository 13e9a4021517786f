// Origins: what the proxy knows of each origin besides its pool: settings, TLS identity, pinned addresses, metrics.
// Made once per origin, never destroyed while loops run, so that loops keep plain pointers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "metrics/registry.h"
#include "pool/destination.h"
#include "pool/directory.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/net/address.h"
#include "proxy/tls_identity.h"

namespace carpool::proxy {

// One origin. Immutable after it was made, but for `dials`; the destination guards itself.
struct OriginContext {
  pool::Destination* destination = nullptr;
  config::PoolSettings pool;
  config::Request request;
  std::string authority;       // Host for this origin
  TlsIdentity* tls = nullptr;  // null: plain text
  std::vector<net::Address> pinned;
  std::atomic<std::uint32_t> dials{0};  // in progress, all loops together; relaxed: a hint for deadlines
  metrics::OriginSlot slot = metrics::kOtherOrigin;
};

class Origins {
 public:
  // Loads every TLS file that the configuration names: blocking, before the loops run.
  static Result<std::unique_ptr<Origins>> make(const config::Config& config, pool::House& house,
                                               metrics::Registry& metrics);
  ~Origins();

  // The context of `origin`; its TLS identity is filled in from the configuration. Takes a mutex: loops cache the
  // answer.
  Result<OriginContext*> at(pool::Origin origin);
  // Of a destination made by at(); any thread.
  OriginContext* of(const pool::Destination& destination) const;
  std::vector<OriginContext*> all() const;
  // The [[origin]] that lists this canonical host as an alias, or null.
  const config::OriginSettings* alias(const std::string& host) const;
  pool::Directory& directory() { return *directory_; }

 private:
  Origins(const config::Config& config, metrics::Registry& metrics);
  Status load_tls();
  std::unique_ptr<OriginContext> describe(const pool::Origin& origin) const;
  const config::OriginSettings* settings_of(const pool::Origin& origin) const;

  const config::Config& config_;
  metrics::Registry& metrics_;
  std::vector<std::unique_ptr<TlsIdentity>> tls_;  // by Origin::tls; [0]: what [upstream] says
  std::unordered_map<std::string, const config::OriginSettings*> configured_;  // by label
  std::unordered_map<std::string, const config::OriginSettings*> aliases_;     // by canonical host
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<OriginContext>> contexts_;     // guarded by mutex_; by label
  std::unordered_map<const pool::Destination*, OriginContext*> by_destination_;  // guarded by mutex_
  std::unique_ptr<pool::Directory> directory_;  // last: ends first, while contexts still stand
};

}  // namespace carpool::proxy
