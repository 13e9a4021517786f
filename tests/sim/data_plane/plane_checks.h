// PlaneChecks: the oracles that inspect the proxy of a PlaneWorld after each turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "proxy/exchange/exchange.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "tests/sim/data_plane/loop_plane.h"
#include "tests/sim/data_plane/memory_check.h"
#include "tests/sim/data_plane/names.h"
#include "tests/sim/data_plane/pause_check.h"
#include "tests/sim/data_plane/plane_parts.h"
#include "tests/sim/data_plane/reloaded.h"
#include "tests/sim/data_plane/share_check.h"
#include "tests/sim/data_plane/turn_check.h"

namespace carpool::test {

class PlaneChecks {
 public:
  PlaneChecks(Account& account, const Plan& plan, Names& names, Reloaded& reloaded)
      : names_(names),
        reloaded_(reloaded),
        turns_(account, plan.classes != 0, std::max(1U, plan.size)),
        shares_(account),
        pauses_(account, plan.cools != 0 ? kMaxPause : Duration::zero()),
        memory_(account) {}

  void look(const std::vector<proxy::OriginRuntime*>& in_force, const std::vector<std::unique_ptr<LoopPlane>>& planes,
            const std::list<OriginLink>& links, std::list<ClientLink>& client_links, Instant now) LOOP_ONLY {
    Holders holders;
    for (const proxy::OriginRuntime* origin : in_force) {
      pauses_.look(*origin->destination, now);
      names_.look(*origin, links, now);
    }
    for (const auto& one : planes) {
      one->each_exchange([&](const proxy::Exchange& exchange) LOOP_ONLY {
        see(exchange, in_force, links, now);
        const bool runs = exchange.state() != proxy::ExchangeState::idle;
        holders.exchanges += runs ? 1 : 0;
        holders.streams += runs && exchange.info().origin != nullptr && exchange.info().origin->protocols.h2 ? 1 : 0;
      });
      holders.clients += one->clients();
    }
    turns_.end_turn();
    pauses_.end_turn(now);
    for (ClientLink& client_link : client_links) shares_.look(client_link.client);
    shares_.end_turn();
    for (const OriginLink& link : links) holders.connections += link.connection != nullptr || link.place ? 1 : 0;
    holders.origins = static_cast<std::int64_t>(in_force.size());
    holders.loops = static_cast<std::int64_t>(planes.size());
    memory_.look(holders);
  }

 private:
  void see(const proxy::Exchange& exchange, const std::vector<proxy::OriginRuntime*>& in_force,
           const std::list<OriginLink>& links, Instant now) LOOP_ONLY {
    turns_.see(exchange);
    shares_.see(exchange);
    pauses_.see(exchange, now);
    names_.see(exchange, links);
    reloaded_.see(exchange, in_force);
  }

  Names& names_;
  Reloaded& reloaded_;
  TurnCheck turns_;
  ShareCheck shares_;
  PauseCheck pauses_;
  MemoryCheck memory_;
};

}  // namespace carpool::test
