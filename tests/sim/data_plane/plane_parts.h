// PlaneParts: the connections to origins and the clients of a PlaneWorld, and the configuration of a plan.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool/destination/destination.h"
#include "proxy/config/config.h"
#include "proxy/net/address.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/h2/connection.h"
#include "tests/sim/data_plane/scripted_client.h"
#include "tests/sim/data_plane/scripted_h2_client.h"
#include "tests/sim/data_plane/scripted_h2_origin.h"
#include "tests/sim/data_plane/scripted_origin.h"

namespace carpool::test {

// A connection to an origin, from its dial to its close.
struct OriginLink {
  OriginLink(Account& account, std::size_t room) : wire(room), origin(account, wire) { wire.clock = &account.now; }
  VirtualWire wire;
  ScriptedOrigin origin;
  pool::Destination* destination = nullptr;
  std::unique_ptr<ScriptedH2Origin> h2;    // in place of `origin`
  std::unique_ptr<ScriptedTunnel> tunnel;  // likewise, for CONNECT
  // The origin's end.
  bool read(std::size_t most) { return h2 ? h2->read(most) : tunnel ? tunnel->read(most) : origin.read(most); }
  bool reset_when_sent() {
    return h2 ? h2->reset_when_sent() : tunnel ? tunnel->reset_when_sent() : origin.reset_when_sent();
  }
  std::vector<proxy::net::Address> tries;            // of its dial, in order; empty: no address is known
  std::optional<proxy::net::Address> peer;           // that the dial reached
  std::optional<bool> chose_h2;                      // of an origin that speaks both protocols
  std::unique_ptr<proxy::H2Connection> handshaking;  // during the handshake
  std::unique_ptr<pool::Reservation> place;          // while it is dialed
  proxy::Connection* connection = nullptr;           // afterwards; null: closed
  LoopId loop = 0;                                   // that watches it
  std::uint32_t index = 0, generation = 0;
};

struct ClientLink {
  ClientLink(const ClientPlan& plan, Account& account, std::size_t room, LoopId on)
      : owned(make(plan, account, room)), client(*owned), loop(on) {}
  static std::unique_ptr<PlaneClient> make(const ClientPlan& plan, Account& account, std::size_t room) {
    if (plan.h2 != 0) return std::make_unique<ScriptedH2Client>(plan, account, room);
    return std::make_unique<ScriptedClient>(plan, account, room);
  }
  const std::unique_ptr<PlaneClient> owned;
  PlaneClient& client;
  LoopId loop;
  bool joined = false;  // it has connected
};

// As the commands of an operator: those of an origin concern also its pools that reloads have replaced.
template <class Command>
void command_all(const std::vector<pool::Destination*>& all, const std::string& label, const Command& command) {
  for (pool::Destination* const one : all) {
    if (one->label() == label) command(*one);
  }
}

inline void set_timeouts(proxy::config::Config& config, std::uint32_t timeout) {
  if (timeout == 0) return;
  config.request.idle_timeout = config.request.response_header_timeout = std::chrono::milliseconds(timeout);
  // An odd number leaves the request to the deadlines of the single steps.
  config.request.timeout = std::chrono::milliseconds(timeout % 2 == 0 ? 3ULL * timeout : 0);
}
// Alias n means the origin that is `moved` further.
inline void name_aliases(proxy::config::Config& config, std::uint32_t moved) {
  const std::size_t count = config.origins.size();
  for (std::size_t n = 0; n < count; ++n)
    config.origins[(n + moved) % count].alias = {"a" + std::to_string(n) + ".test"};
}
inline constexpr Duration kMaxPause = std::chrono::seconds(2);
inline proxy::config::Config plane_config(const Plan& plan) {
  proxy::config::Config config;
  config.workers = std::clamp(plan.loops, 1U, 4U);
  config.pool.size = std::max(1U, plan.size);
  config.pool.tcp_size = 0;  // the same for tcp origins, so that one cap holds for all
  config.pool.max_waiting = 64;
  if (plan.classes != 0) config.pool.classes = {"urgent", "usual"};
  config.pool.cool_down = plan.cools != 0;
  config.pool.max_cool_down = kMaxPause;
  config.request.per_try_timeout = std::chrono::milliseconds(plan.tries);
  config.request.hedge = plan.hedges != 0;
  if (plan.repeats != 0) config.request.retry_on = {"503", "409", "reset", "connect-failure"};
  set_timeouts(config, plan.timeout);
  if (plan.addresses > 1) {
    config.pool.addresses.eject_after = 2;
    config.pool.addresses.eject_time = std::chrono::seconds(5);
    config.pool.addresses.gone_after = std::chrono::seconds(2);
  }
  for (std::uint32_t n = 0; n < plan.origins; ++n) {
    const bool both = plan.offers_both(n);
    if (n >= plan.h2 && !both && plan.addresses < 2 && plan.streams == 0 && plan.routes == 0) continue;
    proxy::config::OriginSettings& origin = config.origins.emplace_back();
    origin.origin = *pool::parse_origin((both ? "https://o" : "http://o") + std::to_string(n) + ".test");
    origin.pool = config.pool;
    origin.request = config.request;
    if (n < plan.h2) origin.upstream.protocols = {"h2"};
    if (both) origin.upstream.protocols = {"h1", "h2"};
    if (plan.streams != 0) origin.profile = proxy::config::Profile::streaming;
  }
  if (plan.routes != 0) name_aliases(config, 0);
  return config;
}

}  // namespace carpool::test
