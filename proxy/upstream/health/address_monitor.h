// AddressMonitor: makes connections follow the DNS of their origin. The first loop queries the names of origins that
// have connections (the resolver answers from its cache until the TTL expires). Each loop closes its own idle
// connections to an address that the name no longer has (dns_changed, a few at a time) or that keeps failing
// (unhealthy). Borrowed connections are checked when they are returned. The first loop also logs ejections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/role.h"
#include "exec/timer.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

struct UpstreamContext;

// LoggedEjections: remembers which ejections of the addresses of one origin were logged, so that each is logged once.
class LoggedEjections {
 public:
  struct Ejection {
    std::string address;
    std::uint32_t number;  // counts those of the address
  };
  // Returns the ejections that last and were not returned before.
  std::vector<Ejection> update(const net::AddressSet& addresses, Instant now);

 private:
  std::unordered_map<std::string, std::uint32_t> logged_;  // the ejections of each address
};

class AddressMonitor {
 public:
  AddressMonitor(const UpstreamContext& context, dns::Resolver& resolver);
  ~AddressMonitor();
  void start() LOOP_ONLY;
  void stop() LOOP_ONLY;
  // Must be called before these pools, sorted by address, are destroyed.
  void forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

 private:
  class Query;
  struct Watched {
    const pool::Destination* destination = nullptr;
    std::unique_ptr<Query> query;
    std::uint64_t ejections = 0;  // already counted
    LoggedEjections logged;
  };
  void tick();
  void follow(const OriginRuntime& origin, Instant now) LOOP_ONLY;
  void query(const OriginRuntime& origin, Watched& watched, Instant now) LOOP_ONLY;
  void log_ejections(const OriginRuntime& origin, Watched& watched, Instant now) LOOP_ONLY;
  bool retire(const OriginRuntime& origin, Instant now) LOOP_ONLY;

  const UpstreamContext& context_;
  dns::Resolver& resolver_;
  exec::Timer timer_;
  std::unordered_map<const net::AddressSet*, Watched> watched_;  // on the first loop only
};

}  // namespace carpool::proxy
