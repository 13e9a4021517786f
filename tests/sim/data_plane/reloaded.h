// Reloaded: the configurations that an operator of a plan puts in force one after another, and the oracle of their
// effect: a request that was sent after a reload uses its origin as that reload describes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pool/queue/wait_queue.h"
#include "proxy/config/config.h"
#include "proxy/exchange/exchange.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "tests/sim/data_plane/plane_parts.h"

namespace carpool::test {

// PausesKept: a reload, which takes no time, neither begins nor ends a pause that an origin requested.
class PausesKept {
 public:
  PausesKept(const proxy::OriginRegistry& origins, Instant now) : origins_(origins), now_(now) { read(before_); }
  bool still() const {
    Pauses after;
    read(after);
    return std::all_of(after.begin(), after.end(), [this](const auto& one) {
      const auto before = before_.find(one.first);
      return before == before_.end() || before->second == one.second;
    });
  }

 private:
  using Pauses = std::map<std::string, std::optional<Duration>>;
  void read(Pauses& pauses) const {
    for (const proxy::OriginRuntime* const one : origins_.all())
      pauses[one->destination->label()] = one->destination->cooling(now_);
  }
  const proxy::OriginRegistry& origins_;
  const Instant now_;
  Pauses before_;
};

class Reloaded {
 public:
  Reloaded(Account& account, const Plan& plan) : account_(account), plan_(plan) {}

  // Returns the next configuration, a change of `first`. Running loops keep pointers to the earlier ones.
  proxy::config::Config& next(proxy::config::Config first, Random& random) {
    proxy::config::Config& fresh = all_.emplace_back(std::move(first));
    fresh.pool.size = 1 + pick(random, 4);
    fresh.pool.max_usage = chance(random, 30) ? 1 + pick(random, 5) : 0;
    if (plan_.timeout != 0) set_timeouts(fresh, plan_.timeout + 2 * pick(random, plan_.timeout));
    for (proxy::config::OriginSettings& origin : fresh.origins) {
      origin.pool = fresh.pool;
      origin.request = fresh.request;
      std::vector<std::string>& protocols = origin.upstream.protocols;
      if (origin.origin.scheme == pool::Scheme::https && protocols.size() == 2 && chance(random, 20))
        protocols.erase(protocols.begin() + pick(random, 2));
    }
    if (plan_.lists != 0) change_origins(fresh, random);
    const std::uint32_t moved = plan_.routes != 0 ? pick(random, plan_.origins) : 0;
    if (moved != 0) name_aliases(fresh, moved);
    account_.aliases.push_back(moved);
    return fresh;
  }
  // Must be called after each turn, with every exchange.
  void see(const proxy::Exchange& exchange, const std::vector<proxy::OriginRuntime*>& in_force) LOOP_ONLY {
    const proxy::OriginRuntime* const origin = exchange.info().origin;
    if (exchange.state() == proxy::ExchangeState::idle || origin == nullptr) return;
    if (plan_.lists != 0) see_lease(exchange, *origin);
    if (plan_.lists != 0) see_wait(exchange, *origin, in_force);
    if (account_.aliases.size() == 1) return;
    const RequestRecord* const one = account_.find_token(exchange.request().fields.get(kMarkField));
    if (one == nullptr || one->noisy() || one->reload + 1 != account_.aliases.size()) return;
    if (origin->destination->reclaimed()) return;
    if (std::find(in_force.begin(), in_force.end(), origin) == in_force.end())
      account_.complain(one->token + " uses its origin as an earlier configuration describes it");
  }

 private:
  // No reload came between its turn and this look.
  void see_lease(const proxy::Exchange& exchange, const proxy::OriginRuntime& origin) LOOP_ONLY {
    std::uint64_t& connection = connections_[&exchange];
    const std::uint64_t last = std::exchange(connection, exchange.holds_lease() ? exchange.info().connection : 0);
    if (connection != last && connection != 0 && origin.is_replaced())
      account_.complain("a request gets a connection of a pool that a reload replaced");
  }
  // A replaced pool is paused only while its successor is.
  void see_wait(const proxy::Exchange& exchange, const proxy::OriginRuntime& origin,
                const std::vector<proxy::OriginRuntime*>& in_force) LOOP_ONLY {
    const pool::Destination& earlier = *origin.destination;
    if (!pool::WaitQueue::in(exchange) || !origin.is_replaced() || !earlier.paused()) return;
    const auto successor = std::find_if(in_force.begin(), in_force.end(), [&earlier](const auto* one) {
      return one->destination->label() == earlier.label();
    });
    if (successor != in_force.end() && !(*successor)->destination->paused())
      account_.complain("a request waits for the end of a pause that a replaced pool alone has");
  }
  // Each [[origin]] may be left out, speak another protocol, or have another TLS identity, and then another pool.
  void change_origins(proxy::config::Config& fresh, Random& random) const {
    for (proxy::config::OriginSettings& origin : fresh.origins) {
      std::vector<std::string>& protocols = origin.upstream.protocols;
      if (origin.origin.scheme == pool::Scheme::https) {
        if (chance(random, 50)) origin.upstream.tls.server_name = "other.test";
      } else if (chance(random, 50)) {
        protocols = {protocols == std::vector<std::string>{"h2"} ? "h1" : "h2"};
      }
    }
    if (plan_.routes == 0) std::erase_if(fresh.origins, [&](const auto&) { return chance(random, 30); });
  }

  Account& account_;
  const Plan& plan_;
  std::list<proxy::config::Config> all_;
  std::map<const proxy::Exchange*, std::uint64_t> connections_;  // by exchange that has one
};

}  // namespace carpool::test
