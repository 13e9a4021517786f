// Returns the plan of a seed: mostly ordinary traffic, with a few of every violation by origins and clients.
#pragma once

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/plan.h"
#include "tests/sim/session_wire.h"

namespace carpool::test {

inline std::uint32_t some_size(Random& random) {
  const std::uint32_t kind = pick(random, 10);
  return kind < 3 ? 0 : kind < 7 ? pick(random, 40) : kind < 9 ? pick(random, 5000) : pick(random, 150000);
}

inline ResponsePlan some_response(Random& random, std::uint32_t hostile) {
  ResponsePlan response;
  response.framing = pick(random, 3);
  response.size = some_size(random);
  response.trailers = response.framing != 0 && chance(random, 25) ? 1 : 0;
  response.asks = chance(random, 10) ? 1 : 0;
  response.auth = chance(random, 4) ? 1 : 0;
  if (response.auth != 0) response.status = 401;
  if (chance(random, 2)) response.fields = pick(random, 9000);
  if (!chance(random, hostile)) return response;
  response.informational = chance(random, 40) ? (chance(random, 10) ? 60 + pick(random, 60) : pick(random, 4)) : 0;
  response.early = chance(random, 30) ? 1 : 0;
  constexpr std::uint32_t kStatuses[] = {0, 204, 304, 404, 421, 421, 503, 200, 200, 200};
  response.status = kStatuses[pick(random, 10)];
  response.end = chance(random, 50) ? pick(random, ResponseEnd::silent) : ResponseEnd::whole;
  if (chance(random, 5)) {
    response.rogue = 1 + pick(random, 30);
    response.informational = 1 + pick(random, 3);
  }
  return response;
}

// Each attempt is refused in one way: by the end of a connection or stream, or by 421.
inline void refuse_always(Random& random, RequestPlan& one) {
  ResponsePlan refusal;
  refusal.status = chance(random, 50) ? 421 : 0;
  refusal.size = pick(random, 2);  // HTTP/2: HTTP_1_1_REQUIRED or REFUSED_STREAM
  one.responses.assign(Account::kMaxAttempts + 1, refusal);
}

inline void some_tunnel(Random& random, RequestPlan& one) {
  one.method = kConnect + pick(random, 2);
  one.size = some_size(random);
  one.chunked = pick(random, 2);
  one.gives_up = chance(random, 10) ? 2 + pick(random, 2000) : pick(random, 2);
}

// 101 while the client sends its body.
inline void switch_early(RequestPlan& one) {
  one.size = 500 + one.size % 500;
  for (ResponsePlan& response : one.responses) {
    response.status = 200;
    response.early = 1;
  }
}

// The client waits for 100 (Continue) before it sends the body; origins send it, omit it, or refuse the body.
inline void some_expectation(Random& random, RequestPlan& one) {
  one.expect = 1 + pick(random, Expecting::count - 1);
  if (one.expect == Expecting::strict) return;
  constexpr std::uint32_t kStatuses[] = {417, 417, 401, 200};
  for (ResponsePlan& response : one.responses) {
    response.asks = chance(random, 50) ? 1 : 0;
    if (!chance(random, 40)) continue;
    response.early = 1;
    response.status = kStatuses[pick(random, 4)];
  }
}

// An origin or a client stops sending, so that only a deadline ends the request.
inline void some_silence(Random& random, ClientPlan& client) {
  for (RequestPlan& one : client.requests) {
    if (one.responses.front().status != 0 && chance(random, 40)) one.responses.front().end = ResponseEnd::silent;
    if (one.body_follows() && chance(random, 30)) one.stalls = 1;
  }
}

// Far more bytes than the proxy may hold, and a client or an origin that stops reading.
inline void some_bulk(Random& random, Plan& plan) {
  plan.timeout = 1000 + pick(random, 5000);
  plan.room = 65536;
  plan.window = 0;
  plan.clients.resize(1);
  ClientPlan& client = plan.clients.front();
  client.leaves_after = client.stops_reading = 0;
  client.half = client.h2 == 0 && chance(random, 30) ? 1 : 0;
  if (client.h2 != 0) client.window = chance(random, 50) ? 1U << 20 : client.window;
  for (RequestPlan& one : client.requests) {
    one = RequestPlan{.method = pick(random, 2), .origin = one.origin, .responses = {{}}};
    const bool up = one.method == 1;
    one.chunked = up ? pick(random, 2) : 0;
    one.size = up ? 300'000 + pick(random, 1'200'000) : 0;
    ResponsePlan& response = one.responses.front();
    response = {.framing = pick(random, 3), .size = up ? pick(random, 50) : 300'000 + pick(random, 1'200'000)};
    response.stops_reading = up && chance(random, 60) ? 1 : 0;
    response.early = up && response.stops_reading != 0 && chance(random, 30) ? 1 : 0;
  }
  if (chance(random, 60)) client.stops_reading = 1 + pick(random, 100'000);
}

// A client that stops reading; over HTTP/2 the window of its connection may close before those of its streams, and the
// stream that closed it may be reset while others still need it.
inline void stop_reading(Random& random, Plan& plan, ClientPlan& client) {
  client.stops_reading = 1 + pick(random, chance(random, 50) ? 100 : 3000);
  if (client.h2 == 0 || client.requests.size() < 2 || chance(random, 50)) return;
  client.stops_reading = 100 + pick(random, 30'000);  // of 64 KiB
  client.pipelines = 3;
  client.window = 1U << 18;
  for (RequestPlan& one : client.requests) one.responses.front() = {.framing = 1};
  client.requests.front().responses.front() = {.size = 100'000 + pick(random, 50'000)};
  if (chance(random, 50)) return;
  plan.room = 1U << 17;
  RequestPlan& first = client.requests.front();
  first = RequestPlan{
      .origin = first.origin, .gives_up = 1 + pick(random, client.stops_reading), .responses = first.responses};
}

// A client whose windows exceed what the proxy writes at once, and which reads several long responses concurrently: the
// proxy chooses the stream that comes next.
inline void some_parallel_reading(Random& random, Plan& plan) {
  plan.size = 8;
  ClientPlan& client = plan.clients.front();
  client.window = 1U << 20;
  client.requests.resize(5 + pick(random, 4));
  for (RequestPlan& one : client.requests) {
    one = RequestPlan{.origin = pick(random, plan.origins), .responses = {{}}};
    one.responses.front() = {.framing = pick(random, 2), .size = 100'000 + pick(random, 400'000)};
  }
}

// Several uploads on one session whose origin's windows exceed what the proxy writes at once. A frame may wait for the
// socket when its client cancels.
inline void some_parallel_writing(Random& random, Plan& plan) {
  plan.h2 = plan.origins = 1;
  plan.size = 1;
  ClientPlan& client = plan.clients.front();
  client.requests.resize(3 + pick(random, 4));
  for (RequestPlan& one : client.requests) {
    one = RequestPlan{.method = 1, .size = 60'000 + pick(random, 200'000), .responses = {{}}};
    one.chunked = pick(random, 2);
    one.gives_up = pick(random, 2);
    if (chance(random, 50)) continue;
    one.responses.front() = {.size = 1 + pick(random, 40'000), .early = 1};
    one.gives_up = 1 + pick(random, one.responses.front().size);
  }
}

inline void some_parallel(Random& random, Plan& plan) {
  plan.room = chance(random, 50) ? 65536 : 1000 + pick(random, 30'000);
  plan.timeout = plan.commands = plan.classes = plan.window = plan.failing = 0;
  plan.wide = 1U << 20;
  plan.clients.assign(
      1, ClientPlan{.loop = pick(random, plan.loops), .pipelines = 7, .h2 = 1, .wide = 1U << 20, .requests = {}});
  chance(random, 50) ? some_parallel_reading(random, plan) : some_parallel_writing(random, plan);
}

// Bytes that wait for their client: of a response that breaks off, and of a tunnel that its origin ends.
inline void some_backlog(Random& random, Plan& plan) {
  plan.room = 200 + pick(random, 3000);
  plan.failing = 0;
  for (ClientPlan& client : plan.clients) {
    client.leaves_after = client.stops_reading = 0;
    if (client.h2 != 0) client.window = 2000 + pick(random, 10'000);
    for (RequestPlan& one : client.requests) {
      const bool tunnel = client.h2 == 0 && chance(random, 50);
      ResponsePlan response{.size = 3000 + pick(random, 30'000), .end = tunnel ? ResponseEnd::whole : ResponseEnd::fin};
      if (!tunnel) response.framing = pick(random, 2);
      one =
          RequestPlan{.method = tunnel ? kConnect + pick(random, 2) : 0, .origin = one.origin, .responses = {response}};
    }
  }
}

inline void some_session(Random& random, ClientPlan& client) {
  client.pipelines = pick(random, chance(random, 10) ? 8 : 4);
  if (chance(random, 30)) client.window = 2000 + pick(random, 60000);
  if (chance(random, 30)) client.pieces = 1 + pick(random, 40);
  client.goaway = chance(random, 20) ? 1 : 0;
  client.pings = chance(random, 5) ? 1 + pick(random, 30) : 0;
}

// Over HTTP/2 the response that is dropped has trailers after a length, and so has the next one.
inline void repeat_with_trailers(Random& random, RequestPlan& one) {
  if (!chance(random, 50)) return;
  for (ResponsePlan& response : one.responses) response.trailers = 1;
}

// Optional settings of an operator, and the responses that they affect. They use their own random numbers, so that the
// rest of a seed's plan does not depend on them.
inline void some_options(Random& random, Plan& plan) {
  plan.cools = chance(random, 8) ? 1 : 0;
  plan.repeats = chance(random, 10) ? 1 : 0;
  plan.tries = chance(random, 8) ? 300 + pick(random, 2000) : 0;
  plan.hedges = plan.tries != 0 && chance(random, 2) ? 1 : 0;
  plan.pieces = chance(random, 10) ? 10 + pick(random, 200) : 0;
  for (ClientPlan& client : plan.clients) {
    for (RequestPlan& one : client.requests) {
      for (ResponsePlan& response : one.responses) {
        if (response.informational != 0) response.kind = pick(random, 5);
        if (plan.tries != 0 && response.status != 0 && response.status != 421 && chance(random, 20))
          response.end = ResponseEnd::silent;
        if (plan.cools + plan.repeats == 0 || response.status != 200 || !chance(random, 12)) continue;
        constexpr std::uint32_t kStatuses[] = {503, 503, 429, 409};
        response.status = kStatuses[pick(random, 4)];
        if (plan.repeats != 0 && response.framing == 0) repeat_with_trailers(random, one);
        response.pause = chance(random, 10) ? 60 : pick(random, 3);
      }
    }
  }
}

// Origins that speak both protocols, have several addresses, or stream. These have random numbers of their own, too.
inline void some_lulls(Random& random, Plan& plan) {
  plan.streams = 1;
  plan.timeout = 1001 + 2 * pick(random, 1000);
  for (ClientPlan& client : plan.clients) {
    client.stops_reading = 0;  // nothing would end a tunnel or an event stream that waits for its client
    for (RequestPlan& one : client.requests) {
      for (ResponsePlan& response : one.responses) {
        if (one.method == kUpgrade && response.end == ResponseEnd::silent) response.end = ResponseEnd::whole;
        response.events = response.end == ResponseEnd::silent ? 0 : pick(random, 2);  // nothing would end it
        if (chance(random, 40)) response.lull = chance(random, 70) ? 3 * plan.timeout + 3000 : plan.timeout / 3;
      }
    }
  }
}
// Many reloads replace the pools of requests that wait, and origins close their connections without a response.
inline void some_replacements(Random& random, Plan& plan) {
  plan.commands = 2 + pick(random, 8);
  for (ClientPlan& client : plan.clients) {
    for (RequestPlan& one : client.requests) {
      if (one.method == 0 && chance(random, 40)) one.responses.front() = {.status = 0, .size = 2};
    }
  }
}
// Pools end while a dial is in progress for which no request waits: connections that were returned have served the
// waiters, or the waiters have left.
inline void some_slow_dials(Random& random, Plan& plan) {
  plan.slow = 80 + pick(random, 18);
  plan.commands = 3 + pick(random, 8);
  for (ClientPlan& client : plan.clients) {
    for (RequestPlan& one : client.requests) {
      if (client.h2 != 0 && one.method < kConnect && chance(random, 30)) one.gives_up = 1;
    }
  }
}
// Pauses that origins ask for while reloads replace their pools.
inline void some_moved_pauses(Random& random, Plan& plan) {
  plan.lists = 1;
  if (plan.h2 + plan.both == 0) plan.h2 = plan.origins;  // the others have no settings that a reload could change
  plan.commands = 3 + pick(random, 10);
  for (ClientPlan& client : plan.clients) {
    for (RequestPlan& one : client.requests) {
      if (one.method != 0 || !chance(random, 30)) continue;
      one.responses.front() = {.status = 503, .size = pick(random, 100), .pause = 1 + pick(random, 2)};
    }
  }
}
// Reloads in the middle that move the routes of requests, drop and change origins, and the end of unused pools.
inline void some_reloads(Random& random, Plan& plan) {
  if (plan.classes != 0) return;  // their shares depend on the size of the pools
  const bool plain = plan.addresses == 0 && plan.streams == 0;
  if (plain && plan.cools == 0 && plan.origins > 1 && chance(random, 8)) plan.routes = 1;
  if (plain && plan.cools == 0 && chance(random, plan.routes != 0 ? 50 : 6)) plan.lists = 1;
  if (plan.addresses == 0 && chance(random, plan.routes + plan.lists != 0 ? 40 : 3)) plan.expires = 1;
  if (chance(random, 5)) plan.moves = 1;
  if (plan.routes + plan.lists + plan.expires + plan.moves != 0 && plan.commands == 0)
    plan.commands = 5 + pick(random, 40);
  if (plan.lists != 0 && chance(random, 40)) some_replacements(random, plan);
  if (plain && plan.cools != 0 && chance(random, 30)) some_moved_pauses(random, plan);
  if (plan.expires != 0 && chance(random, 30)) some_slow_dials(random, plan);
  for (ClientPlan& client : plan.clients) {
    if (plan.routes + plan.lists + plan.expires + plan.moves != 0 && chance(random, 30))
      client.joins = pick(random, 200);
  }
}
inline void some_origins(Random& random, Plan& plan) {
  if (chance(random, 15)) plan.both = pick(random, plan.origins - plan.h2 + 1);
  if (plan.both != 0) plan.alpn = chance(random, 20) ? 100 : 10 + pick(random, 90);
  if (plan.timeout == 0 && plan.tries == 0 && chance(random, 8)) {
    plan.addresses = 2 + pick(random, 3);
    if (plan.classes == 0 && plan.commands == 0) plan.commands = 20 + pick(random, 100);
  }
  if (plan.addresses == 0 && plan.tries == 0 && chance(random, 4)) some_lulls(random, plan);
}

// Origins close idle connections, unannounced.
inline void some_departures(Random& random, Plan& plan) {
  for (ClientPlan& client : plan.clients) {
    for (RequestPlan& one : client.requests) {
      for (ResponsePlan& response : one.responses) {
        if (chance(random, 30)) response.quits = 1 + pick(random, 8);
      }
    }
  }
}
// An origin closes the connection that has authenticated a client while that client waits for another origin.
inline void some_lost_owners(Random& random, Plan& plan) {
  plan.origins = 2;
  plan.h2 = plan.both = plan.failing = plan.routes = 0;
  plan.slow = 80 + pick(random, 18);
  for (ClientPlan& client : plan.clients) {
    if (client.h2 != 0) continue;
    client.pipelines = client.half = client.leaves_after = client.stops_reading = 0;
    client.requests.resize(2);
    client.requests[0] = {.origin = pick(random, 2), .auth = 1, .responses = {{.quits = 1 + pick(random, 20)}}};
    client.requests[1] = {.origin = 1 - client.requests[0].origin, .responses = {{}}};
  }
}

inline Plan plan_of(std::uint64_t seed) {
  Random random(seed * 2 + 1);
  Plan plan;
  plan.seed = seed;
  plan.loops = 1 + pick(random, 3);
  plan.origins = 1 + pick(random, 2);
  plan.h2 = chance(random, 60) ? pick(random, plan.origins + 1) : 0;
  plan.size = 1 + pick(random, 4);
  plan.room = chance(random, 30) ? 200 + pick(random, 5000) : 65536;
  plan.failing = chance(random, 20) ? pick(random, 30) : 0;
  plan.timeout = chance(random, 15) ? 1000 + pick(random, 5000) : 0;
  plan.commands = chance(random, 20) ? 5 + pick(random, 100) : 0;
  plan.classes = plan.commands == 0 && chance(random, 25) ? 1 : 0;
  plan.window = chance(random, 25) ? 1000 + pick(random, 59'000) : 0;
  const std::uint32_t hostile = chance(random, 30) ? 0 : pick(random, 80);
  plan.clients.resize(1 + pick(random, 6));
  for (ClientPlan& client : plan.clients) {
    client.loop = pick(random, plan.loops);
    client.pipelines = pick(random, 2);
    if (chance(random, hostile / 4)) client.leaves_after = 1 + pick(random, 3000);
    client.h2 = chance(random, 40) ? 1 : 0;
    if (client.h2 != 0) some_session(random, client);
    client.requests.resize(1 + (client.pipelines > 3 ? 4 + pick(random, 4) : pick(random, 4)));
    for (RequestPlan& one : client.requests) {
      constexpr std::uint32_t kMethod[] = {0, 0, 0, 0, 1, 1, 2, 3};
      one.method = kMethod[pick(random, 8)];
      one.origin = pick(random, plan.origins);
      if (chance(random, 8)) some_tunnel(random, one);
      if (client.h2 == 0 && one.method < kConnect && chance(random, 10)) one.version = 1 + pick(random, 2);
      if (one.method < kConnect && chance(random, 5)) one.auth = 1;
      if (one.method == 1 || one.method == 3) one.size = some_size(random);
      if (one.method < kConnect) one.chunked = one.size != 0 && one.version == 0 && chance(random, 40) ? 1 : 0;
      if (one.method < kConnect) one.trailers = one.chunked != 0 && chance(random, 40) ? 1 : 0;
      if (client.h2 != 0 && one.method == kUpgrade) one.chunked = 0;
      if (client.h2 != 0 && one.method < kConnect && chance(random, hostile / 4))
        one.gives_up = 1 + pick(random, 2) * pick(random, 3000);
      for (std::uint32_t n = 1 + pick(random, 3); n > 0; --n) one.responses.push_back(some_response(random, hostile));
      if (one.method == kUpgrade && one.chunked != 0 && chance(random, 50)) switch_early(one);
      if (chance(random, hostile / 8)) refuse_always(random, one);
      if (one.body_follows() && one.version == 0 && chance(random, 15)) some_expectation(random, one);
      if (plan.classes != 0) one.urgent = pick(random, 2);
      if (one.method < kConnect && chance(random, 2)) one.fields = pick(random, 9000);
    }
    if (client.h2 == 0 && chance(random, 15)) client.half = 1;
    if (plan.timeout != 0 && chance(random, 50)) some_silence(random, client);
    if (chance(random, 3)) stop_reading(random, plan, client);
  }
  if (chance(random, 1)) some_bulk(random, plan);
  if (chance(random, 2)) some_parallel(random, plan);
  Random others(seed * 2);
  some_options(others, plan);
  Random waits(~(seed * 2));
  if (chance(waits, 3)) some_backlog(waits, plan);
  Random origins(~seed);
  some_origins(origins, plan);
  some_reloads(origins, plan);
  Random departures(~seed * 2);
  if (chance(departures, 5)) some_departures(departures, plan);
  if (chance(departures, 1)) some_lost_owners(departures, plan);
  return plan;
}

}  // namespace carpool::test
