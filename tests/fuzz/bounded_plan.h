// bounded(): makes any plan one that the simulated data plane can judge: small, and without demands that contradict
// each other.
#pragma once

#include <algorithm>
#include <array>

#include "tests/sim/data_plane/plan.h"

namespace carpool::fuzz {

using test::ClientPlan;
using test::Plan;
using test::RequestPlan;
using test::ResponsePlan;

template <class List>
void cut(List& list, std::size_t most) {
  if (list.size() > most) list.resize(most);
}

inline void bound(ResponsePlan& response) {
  constexpr std::array kStatuses{200U, 0U, 204U, 304U, 401U, 404U, 409U, 417U, 421U, 429U, 503U};
  const bool known = std::find(kStatuses.begin(), kStatuses.end(), response.status) != kStatuses.end();
  if (!known) response.status = kStatuses[response.status % kStatuses.size()];
  response.informational %= 130;
  response.framing %= 3;
  response.size = std::min(response.size, 40'000U);
  response.end %= test::ResponseEnd::count;
  response.rogue %= 100;
  response.fields %= 9'000;
  response.pause %= 100'000;
  response.lull %= 20'000;
  response.events %= 2;
  if (response.rogue != 0) response.informational = std::max(response.informational, 1U);
}
inline void bound(RequestPlan& one, const ClientPlan& client, bool noisy) {
  one.method %= test::kMethodCount;
  if (noisy && one.method == test::kConnect) one.method = 0;
  const bool tunnels = one.method >= test::kConnect;
  one.size = std::min(one.size, 40'000U);
  if (!tunnels && !one.body_follows()) one.size = one.chunked = 0;
  one.version = tunnels || client.h2 != 0 ? 0 : one.version % 3;
  if (one.version != 0 || (client.h2 != 0 && one.method == test::kUpgrade)) one.chunked = 0;
  if (tunnels || one.chunked == 0) one.trailers = 0;
  one.expect = one.version != 0 || !one.body_follows() ? 0 : one.expect % test::Expecting::count;
  one.fields %= 9'000;
  if (client.h2 == 0) one.gives_up = tunnels ? one.gives_up % 2 : 0;
  if (!one.body_follows()) one.stalls = 0;
  cut(one.responses, 12);
  for (ResponsePlan& response : one.responses) bound(response);
}
// A connection's window is the protocol's at least: with less, bodies take more turns than a history has.
inline void bound_wide(std::uint32_t& window) {
  if (window != 0) window = std::clamp(window, 65'535U, 1U << 20);
}
inline void bound(ClientPlan& client, bool noisy) {
  client.pipelines %= 5;
  bound_wide(client.wide);
  if (client.window != 0) client.window = std::clamp(client.window, 2000U, 1U << 20);
  client.pieces %= 100;
  client.pings %= 40;
  client.joins %= 400;
  cut(client.requests, 5);
  for (RequestPlan& one : client.requests) bound(one, client, noisy);
}

// Reloads that change what other numbers of the plan rely on are left out.
inline void bound_reloads(Plan& plan) {
  for (std::uint32_t* const one : {&plan.routes, &plan.lists, &plan.expires, &plan.moves})
    *one = plan.classes != 0 ? 0 : *one % 2;
  if (plan.addresses > 1 || plan.streams != 0) plan.routes = plan.lists = 0;
  if (plan.addresses > 1) plan.expires = 0;
  if (plan.cools % 2 != 0) plan.routes = 0;
}

inline Plan bounded(Plan plan) {
  plan.loops = std::clamp(plan.loops, 1U, 3U);
  plan.origins = std::clamp(plan.origins, 1U, 3U);
  plan.h2 = std::min(plan.h2, plan.origins);
  plan.both = std::min(plan.both, plan.origins - plan.h2);
  plan.alpn %= 101;
  plan.addresses %= 5;
  plan.streams %= 2;
  bound_reloads(plan);
  plan.size = std::clamp(plan.size, 1U, 4U);
  plan.room = std::clamp(plan.room, 200U, 65'536U);
  plan.failing %= 50;
  if (plan.classes != 0) plan.commands = 0;
  if (plan.window != 0) plan.window = std::clamp(plan.window, 1000U, 60'000U);
  bound_wide(plan.wide);
  plan.cools %= 2;
  plan.repeats %= 2;
  if (plan.tries != 0) plan.tries = std::clamp(plan.tries, 100U, 10'000U);
  plan.pieces %= 256;
  plan.timeout = std::clamp(plan.timeout, 1000U, 4000U);  // a client or an origin may stop sending
  cut(plan.clients, 5);
  cut(plan.noise, 8);
  for (test::NoisePlan& one : plan.noise) {
    one.of_origin %= 2;
    one.connection %= 8;
    one.drop %= 70'000;
    one.repeat %= 70'000;
  }
  for (std::size_t n = 0; n < plan.clients.size(); ++n) {
    const bool noisy = std::any_of(plan.noise.begin(), plan.noise.end(), [n](const test::NoisePlan& one) {
      return one.of_origin == 0 && one.connection == n;
    });
    bound(plan.clients[n], noisy);
    for (RequestPlan& one : plan.clients[n].requests) {
      one.origin %= plan.origins;
      for (ResponsePlan& response : one.responses) {
        if (plan.streams == 0 || response.end != test::ResponseEnd::silent) continue;
        response.events = 0;  // nothing would end it
        if (one.method == test::kUpgrade) response.end = test::ResponseEnd::whole;
      }
    }
  }
  return plan;
}

}  // namespace carpool::fuzz
