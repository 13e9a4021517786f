// Resolver: resolves names on one loop with c-ares. Clamps TTLs, serves stale addresses while the name server fails,
// supports /etc/hosts, search domains and both families, and follows changes of both files. One lookup per name is in
// flight, however many questions wait for it. If no name server was reachable, the lookup is retried for about 1.5 s
// while questions wait, and no negative result is cached. If a name server is late with a part of the result (one
// family, for example), the questions get the other part.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/intrusive.h"
#include "base/result.h"
#include "exec/loop.h"
#include "proxy/net/address.h"

namespace carpool::proxy::dns {

class Events;
class KnownNames;

struct Settings {
  Duration min_ttl = std::chrono::seconds(5);
  Duration max_ttl = std::chrono::minutes(5);
  Duration stale_for = std::chrono::minutes(10);
  Duration negative_ttl = std::chrono::seconds(5);  // of "the name does not exist"; zero: not cached
  // Overrides for tests and for machines with resolv.conf at another path.
  std::vector<net::Address> servers;             // empty: those of resolv_conf
  std::string resolv_conf = "/etc/resolv.conf";  // also its `options timeout: attempts: ndots:` and search domains
  Events* events = nullptr;
  KnownNames* known = nullptr;  // shared with the resolvers of other loops
};

// Question: one pending request for a name; its destructor cancels it.
class Question : public ListHook<struct QuestionTag> {
 public:
  // Never called from inside ask(). Addresses have no port and are in the order received, families mixed. Faults:
  // dns_error, dns_timeout.
  virtual void on_addresses(Result<std::vector<net::Address>> addresses) LOOP_ONLY = 0;

 protected:
  ~Question() = default;
};

class Resolver {
 public:
  Resolver(exec::Loop& loop, const Settings& settings);
  ~Resolver();  // pending questions get no result
  void ask(std::string_view host, Question& question) LOOP_ONLY;
  // If the addresses that the question got were a part of the result, it gets all of them once the lookup has ended.
  void await_rest(std::string_view host, Question& question) LOOP_ONLY;
  // Applies from the next response on.
  void set_ttls(Duration min_ttl, Duration max_ttl, Duration stale_for, Duration negative_ttl) LOOP_ONLY;
  // Must be called if no address of `host` was reachable: its cached result counts as stale and the next question
  // starts a lookup.
  void mark_stale(std::string_view host) LOOP_ONLY;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::dns
