// Plan: one history of the data plane as data: the clients, their requests, and the origin's actions for each attempt.
// A seed chooses the order of events and the size of each piece. A plan prints as a script that replays it, and is
// shrunk by leaving elements out.
#pragma once

#include <cstdint>
#include <istream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace carpool::test {

// The end of a response. fin, reset, silent: in place of the last byte; after `silent` nothing follows.
namespace ResponseEnd {
inline constexpr std::uint32_t whole = 0, fin = 1, reset = 2, surplus = 3, silent = 4, count = 5;
}  // namespace ResponseEnd

// ResponsePlan: what the origin does with one attempt of a request.
struct ResponsePlan {
  std::uint32_t status = 200;       // 0: no response; the connection ends at once
  std::uint32_t informational = 0;  // interim heads before it
  std::uint32_t framing = 0;        // of the body: 0 Content-Length, 1 chunked, 2 until close
  std::uint32_t size = 0;           // of the body
  std::uint32_t early = 0;          // 1: it precedes the end of the request's body
  std::uint32_t end = ResponseEnd::whole;
  std::uint32_t rogue = 0;          // HTTP/2: so many bytes of DATA before the final head
  std::uint32_t trailers = 0;       // 1: after the body; over HTTP/1.1 only without Content-Length
  std::uint32_t asks = 0;           // 1: 100 (Continue) at once
  std::uint32_t auth = 0;           // 1, HTTP/1.1: it authenticates the connection
  std::uint32_t fields = 0;         // bytes of one more field of its head
  std::uint32_t stops_reading = 0;  // 1: the origin reads nothing after the request's head
  std::uint32_t kind = 0;           // of the interim heads, an index of kInterim
  std::uint32_t pause = 0;          // seconds of Retry-After; 0: none
  std::uint32_t lull = 0;           // milliseconds without a byte, in the middle of the body
  std::uint32_t events = 0;         // 1: text/event-stream
  std::uint32_t quits = 0;          // HTTP/1.1: FIN follows after so many turns without a request; 0: never
};
// With 103 twice: it is the usual one.
inline constexpr std::uint32_t kInterim[] = {103, 100, 102, 199, 103};
inline std::uint32_t interim_status(const ResponsePlan& response) {
  return kInterim[response.kind % std::size(kInterim)];
}

struct RequestPlan {
  std::uint32_t method = 0;  // an index of kMethods
  std::uint32_t origin = 0;
  std::uint32_t size = 0;  // of the body
  std::uint32_t chunked = 0;
  std::uint32_t gives_up = 0;  // HTTP/2: a reset once so many bytes less one of the response were received; 0: none
  std::uint32_t version = 0;   // HTTP/1 clients: 1: HTTP/1.0, 2: HTTP/1.0 that keeps the connection
  std::uint32_t expect = 0;    // 100-continue, an Expecting
  std::uint32_t trailers = 0;  // 1: after a body without Content-Length
  std::uint32_t auth = 0;      // 1: credentials that authenticate a connection
  std::uint32_t stalls = 0;    // 1: the end of the body never comes
  std::uint32_t urgent = 0;    // 1: of the higher class, if the pools have classes
  std::uint32_t fields = 0;    // bytes of one more field of its head
  std::vector<ResponsePlan> responses;  // by attempt; later attempts are answered in order
  bool body_follows() const { return size != 0 && (method == 1 || method == 3); }
};
inline constexpr const char* kMethods[] = {"GET", "POST", "HEAD", "PUT", "CONNECT", "GET"};
inline constexpr std::uint32_t kMethodCount = 6;
// Tunnels. `size`: of the client's bytes; `chunked`: CONNECT's follow its head at once, and an upgrade of HTTP/1.1 has
// a body; `gives_up`: 1: the client's FIN follows them, 0: that of the origin, more: over HTTP/2 a reset.
inline constexpr std::uint32_t kConnect = 4, kUpgrade = 5;

// A client that expects 100 (Continue) waits for it for a limited time. After a final response without it, the client
// disconnects, sends the body nevertheless, or, over HTTP/2, repeats a request that got 417. `rushes`: it does not
// wait. `strict`: it waits without limit, and each origin asks for its body.
namespace Expecting {
inline constexpr std::uint32_t leaves = 1, sends = 2, repeats = 3, rushes = 4, strict = 5, count = 6;
}  // namespace Expecting

struct ClientPlan {
  std::uint32_t loop = 0;
  std::uint32_t pipelines = 0;
  std::uint32_t leaves_after = 0;   // the client resets after so many bytes; 0: never
  std::uint32_t h2 = 0;             // speaks HTTP/2; then `pipelines`: streams at once, less one
  std::uint32_t window = 0;         // of its streams; 0: the protocol's
  std::uint32_t pieces = 0;         // a header block is sent in pieces of so many bytes; 0: in one
  std::uint32_t goaway = 0;         // follows its last request
  std::uint32_t half = 0;           // HTTP/1: FIN follows its last request
  std::uint32_t stops_reading = 0;  // reads no more after so many bytes; 0: it reads everything
  std::uint32_t pings = 0;          // HTTP/2: before each request
  std::uint32_t wide = 0;           // HTTP/2: the window of its connection; 0: the protocol's
  std::uint32_t joins = 0;          // connects after so many steps of the history
  std::vector<RequestPlan> requests;
};

// NoisePlan: replaces bytes of a client or an origin, from position `at` of the peer's n-th connection.
struct NoisePlan {
  std::uint32_t of_origin = 0, connection = 0, at = 0, drop = 0, byte = 0, repeat = 0;
};

struct Plan {
  std::uint64_t seed = 1;
  // commands: of the operator, one in so many steps by chance; 0: none. h2: the first so many origins speak
  // HTTP/2; room: bytes in flight; failing: percent of the dials; timeout: the timeouts of a request, in milliseconds;
  // 0: as configured. classes: of the pools; window: of the streams to HTTP/2 origins, which changes; 0: the
  // protocol's; wide: of the connections to them, likewise. cools: Retry-After holds requests; repeats:
  // request.retry_on has every condition. tries: request.per_try_timeout, in milliseconds; hedges: 1: request.hedge;
  // pieces: of the header blocks of HTTP/2 origins, as of clients. both: so many origins after those speak both
  // protocols over TLS, of which a dial chooses HTTP/2 in `alpn` percent. addresses: of each origin, which come, go and
  // fail; 0, 1: none is known. streams: 1: profile = "streaming". routes: 1: clients name origins by aliases, which a
  // reload moves to another origin. lists: 1: a reload drops the settings of an origin or gives it another identity.
  // expires: 1: the operator's commands include the end of pools that nothing uses. moves: 1: also a reload that closes
  // the listener and opens another one, and a hand-over, which lets the clients of now leave. slow: percent of the
  // turns in which a dial makes no progress.
  std::uint32_t loops = 1, origins = 1, h2 = 0, size = 1, room = 65536, failing = 0, commands = 0, timeout = 0,
                classes = 0, window = 0, wide = 0, cools = 0, repeats = 0, tries = 0, pieces = 0, both = 0, alpn = 0,
                addresses = 0, streams = 0, hedges = 0, routes = 0, lists = 0, expires = 0, moves = 0, slow = 0;
  bool offers_both(std::uint32_t origin) const { return origin >= h2 && origin - h2 < both; }
  std::vector<ClientPlan> clients;
  std::vector<NoisePlan> noise;
};

// Calls visit(number) for each number of one element, in the order of its script.
template <class Visit>
void each_number(ResponsePlan& one, const Visit& visit) {
  for (std::uint32_t* number : {&one.status, &one.informational, &one.framing, &one.size, &one.early, &one.end,
                                &one.rogue, &one.trailers, &one.asks, &one.auth, &one.fields, &one.stops_reading,
                                &one.kind, &one.pause, &one.lull, &one.events, &one.quits}) {
    visit(*number);
  }
}
template <class Visit>
void each_number(RequestPlan& one, const Visit& visit) {
  for (std::uint32_t* number : {&one.method, &one.origin, &one.size, &one.chunked, &one.gives_up, &one.version,
                                &one.expect, &one.trailers, &one.auth, &one.stalls, &one.urgent, &one.fields}) {
    visit(*number);
  }
}
template <class Visit>
void each_number(ClientPlan& one, const Visit& visit) {
  for (std::uint32_t* number : {&one.loop, &one.pipelines, &one.leaves_after, &one.h2, &one.window, &one.pieces,
                                &one.goaway, &one.half, &one.stops_reading, &one.pings, &one.wide, &one.joins}) {
    visit(*number);
  }
}
template <class Visit>
void each_number(Plan& one, const Visit& visit) {
  for (std::uint32_t* number :
       {&one.loops,   &one.origins, &one.h2,     &one.size,      &one.room,    &one.failing, &one.commands,
        &one.timeout, &one.classes, &one.window, &one.wide,      &one.cools,   &one.repeats, &one.tries,
        &one.pieces,  &one.both,    &one.alpn,   &one.addresses, &one.streams, &one.hedges,  &one.routes,
        &one.lists,   &one.expires, &one.moves,  &one.slow}) {
    visit(*number);
  }
}

template <class Visit>
void each_number(NoisePlan& one, const Visit& visit) {
  for (std::uint32_t* number : {&one.of_origin, &one.connection, &one.at, &one.drop, &one.byte, &one.repeat}) {
    visit(*number);
  }
}

template <class One>
void print(std::ostream& out, const char* word, One one) {
  out << word;
  each_number(one, [&out](std::uint32_t number) { out << ' ' << number; });
  out << '\n';
}
inline std::string script_of(const Plan& plan) {
  std::ostringstream out;
  out << "seed " << plan.seed << '\n';
  print(out, "plan", plan);
  for (const NoisePlan& one : plan.noise) print(out, "noise", one);
  for (const ClientPlan& client : plan.clients) {
    print(out, "client", client);
    for (const RequestPlan& one : client.requests) {
      print(out, "request", one);
      for (const ResponsePlan& response : one.responses) print(out, "answer", response);
    }
  }
  return out.str();
}

// Words in a wrong place are ignored; numbers at the end of a line may be missing.
inline Plan plan_of(std::istream& script) {
  Plan plan;
  for (std::string text; std::getline(script, text);) {
    std::string word;
    std::istringstream line(text);
    const auto number = [&line](std::uint32_t& into) {
      if (std::uint32_t read = 0; line >> read) into = read;
    };
    line >> word;
    RequestPlan* const last =
        plan.clients.empty() || plan.clients.back().requests.empty() ? nullptr : &plan.clients.back().requests.back();
    if (word == "seed") {
      line >> plan.seed;
    } else if (word == "plan") {
      each_number(plan, number);
    } else if (word == "noise") {
      each_number(plan.noise.emplace_back(), number);
    } else if (word == "client") {
      each_number(plan.clients.emplace_back(), number);
    } else if (word == "request" && !plan.clients.empty()) {
      each_number(plan.clients.back().requests.emplace_back(), number);
    } else if (word == "answer" && last != nullptr) {
      each_number(last->responses.emplace_back(), number);
    }
  }
  return plan;
}

}  // namespace carpool::test
