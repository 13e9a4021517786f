// AddressMonitor: sees to it that connections follow their origin's name. The first loop asks for the names of origins
// that have connections (the resolver answers from memory until the TTL is over); each loop closes those of its own
// that rest and lead to an address that the name no longer has (dns_changed, a few at a time), or that only fails
// (unhealthy). Those that are lent are looked at when they come back. The first loop also tells of ejections.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "exec/role.h"
#include "exec/timer.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

struct UpstreamContext;

class AddressMonitor {
 public:
  AddressMonitor(const UpstreamContext& context, dns::Resolver& resolver);
  ~AddressMonitor();
  void start() LOOP_ONLY;
  void stop() LOOP_ONLY;
  // Their pools end: nothing of them is touched any more.
  void forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

 private:
  class Look;
  struct Watched {
    const pool::Destination* destination = nullptr;
    std::unique_ptr<Look> look;
    std::uint64_t ejections = 0;  // that were told
  };
  void tick();
  void follow(const OriginRuntime& origin, Instant now) LOOP_ONLY;
  void ask(const OriginRuntime& origin, Watched& watched, Instant now) LOOP_ONLY;
  void tell_ejections(const OriginRuntime& origin, Watched& watched, Instant now) LOOP_ONLY;
  bool retire(const OriginRuntime& origin, Instant now) LOOP_ONLY;

  const UpstreamContext& context_;
  dns::Resolver& resolver_;
  exec::Timer timer_;
  std::unordered_map<const net::AddressSet*, Watched> watched_;  // the first loop's
};

}  // namespace carpool::proxy
