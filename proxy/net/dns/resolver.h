// Resolver: names to addresses on one loop, by c-ares: TTLs clamped, stale answers served while the name server fails,
// /etc/hosts and search domains honoured, both families; both files are followed. One question in flight per name,
// however many ask. A look-up that no name server took says nothing of its name: it is asked again for some 1.5 s while
// anybody waits, and is not remembered as a refusal.
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

struct Settings {
  Duration min_ttl = std::chrono::seconds(5);
  Duration max_ttl = std::chrono::minutes(5);
  Duration stale_for = std::chrono::minutes(10);
  // For those who bring their own name server: tests, and machines whose resolv.conf stands elsewhere.
  std::vector<net::Address> servers;             // empty: what resolv_conf names
  std::string resolv_conf = "/etc/resolv.conf";  // also `options timeout: attempts: ndots:` and search domains
  Events* events = nullptr;
};

// One question; leaves the line when it dies.
class Question : public ListHook<struct QuestionTag> {
 public:
  // Never from inside ask(). Addresses carry no port; order as received, families mixed. Faults: dns_error,
  // dns_timeout.
  virtual void on_addresses(Result<std::vector<net::Address>> addresses) LOOP_ONLY = 0;

 protected:
  ~Question() = default;
};

class Resolver {
 public:
  Resolver(exec::Loop& loop, const Settings& settings);
  ~Resolver();  // questions that still wait are left unanswered
  void ask(std::string_view host, Question& question) LOOP_ONLY;
  // From the next answer on.
  void set_ttls(Duration min_ttl, Duration max_ttl, Duration stale_for) LOOP_ONLY;
  // None of its addresses answered: what is remembered of `host` counts as stale, the next question asks anew.
  void distrust(std::string_view host) LOOP_ONLY;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::dns
