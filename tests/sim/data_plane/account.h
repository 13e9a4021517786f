// Account: what clients and origins observed of each request, and the oracles that need both sides.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tests/sim/data_plane/marks.h"
#include "tests/sim/data_plane/plan.h"
#include "tests/sim/data_plane/virtual_wire.h"

namespace carpool::test {

// A pause of an origin, and how many commands of the operator may have ended it so far.
struct Pause {
  Instant until{};
  std::uint64_t resumed = 0;
};

// One attempt, as its origin received it.
struct AttemptRecord {
  ResponsePlan response;
  bool session = false;   // over HTTP/2
  bool was_idle = false;  // the connection had carried another request, or was open before this one was sent
  bool owned = false;     // the connection authenticated the client
  const VirtualWire* wire = nullptr;
  std::uint64_t consumed = 0;  // of that wire, before this attempt
  bool refused = false;        // the origin stated that it did not process it
  bool wants_h1 = false;       // by HTTP_1_1_REQUIRED
  std::size_t reloads = 0;     // before its end
  Pause pause;                 // requested by the origin's response
};

struct RequestRecord {
  RequestRecord(std::uint32_t count, const RequestPlan& request, const void* asker, bool over_tls, bool by_alias)
      : number(count),
        token(token_of(count)),
        plan(request),
        client(asker),
        secure(over_tls && !by_alias),
        alias(by_alias && request.method != kConnect),
        host((alias ? "a" : "o") + std::to_string(request.origin) + ".test") {}
  const std::uint32_t number;
  const std::string token;
  const RequestPlan& plan;
  const void* const client;
  const bool secure;  // it names an https origin
  const bool alias;   // it names its origin by an alias
  const std::string host;
  std::size_t reload = 0;  // the last one before the client sent it
  bool noise = false;      // in the bytes of its client
  bool last = false;       // sent on an HTTP/1 connection after the proxy was told to end it
  std::deque<AttemptRecord> attempts;
  // Observed by the client.
  std::uint32_t asked = 1;  // how often the client sent it
  Pause pause;              // of its origin, known to the client when it sent the request
  bool answered = false;    // a final head arrived
  std::uint32_t ends = 0;
  std::uint32_t informational = 0;
  std::uint64_t received = 0;
  std::uint32_t tails = 0;  // trailers
  std::size_t attempt = 0;  // the attempt whose response arrived; SIZE_MAX: a local reply
  bool closed = false;      // over HTTP/2: both sides have ended its tunnel
  std::uint64_t sent = 0;   // bytes of its tunnel that the origin received
  std::string method() const { return kMethods[plan.method % kMethodCount]; }
  // Noise may have altered the request or its response, so nothing can be checked.
  bool noisy() const {
    return noise ||
           std::any_of(attempts.begin(), attempts.end(), [](const AttemptRecord& one) { return one.wire->noisy(); });
  }
  // Returns true if trailers follow the body, which then has no Content-Length.
  bool has_tail() const { return plan.trailers != 0 && plan.chunked != 0 && plan.method < kConnect; }
  // The client sends the request again: the first one had no effect.
  void ask_again() {
    if (!attempts.empty()) attempts.back().refused = true;
    ++asked;
    answered = false;
    ends = tails = informational = 0;
    received = 0;
  }
  bool tunnels() const { return plan.method == kConnect || plan.method == kUpgrade; }
  std::uint32_t body_size() const {
    if (!tunnels()) return plan.size;
    return plan.method == kUpgrade && plan.chunked != 0 ? 1 + plan.size % 1000 : 0;
  }
};

class Account {
 public:
  RequestRecord& add(const RequestPlan& plan, const void* client) {
    return requests.emplace_back(static_cast<std::uint32_t>(requests.size()), plan, client,
                                 plan.origin >= secure_from && plan.origin < secure_to, routes);
  }
  RequestRecord* find(std::string_view path) {
    const std::size_t at = path.rfind("/r");
    return at == std::string_view::npos ? nullptr : find_token(path.substr(at + 1));
  }
  // Returns null for a text that is no token of a request.
  RequestRecord* find_token(std::string_view token) {
    std::size_t number = 0;
    if (!token.starts_with('r')) return nullptr;
    std::from_chars(token.data() + 1, token.data() + token.size(), number, 16);
    return number < requests.size() ? &requests[number] : nullptr;
  }
  void complain(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }
  void complain(const RequestRecord& about, std::string what) {
    if (!about.noisy()) complain(std::move(what));
  }
  // The field that makes a head long.
  void check_pad(const RequestRecord& one, std::uint32_t size, std::string_view value) {
    if (value.size() != size || !bears_mark(one.token, 0, value)) complain(one, one.token + ": a field was changed");
  }
  // A client that holds a connection authenticated by it: no other waiter can be given that connection, and no pause
  // applies to it.
  bool may_have_own_connection(const RequestRecord& one) const {
    return std::any_of(requests.begin(), requests.end(),
                       [&one](const RequestRecord& other) { return other.client == one.client && may_own(other); });
  }
  // The request may be sent on that connection, which leads to one origin. With its end the request is lost.
  bool may_use_own_connection(const RequestRecord& one) const {
    return std::any_of(requests.begin(), requests.end(), [this, &one](const RequestRecord& other) {
      return other.client == one.client && (routes || other.plan.origin == one.plan.origin) && may_own(other);
    });
  }
  // ---- pauses, by Retry-After, from the origin's end to the client's ----
  // An origin sends its final response.
  void note_response(AttemptRecord& attempt) const {
    if (longest_pause == Duration::zero() || attempt.response.pause == 0) return;
    if (attempt.response.status != 429 && attempt.response.status != 503) return;
    const Duration asked = std::chrono::seconds(attempt.response.pause);
    attempt.pause = {now + std::min(asked, longest_pause), resumed};
  }
  // A client received it.
  void note_received(const RequestRecord& one, const AttemptRecord& attempt) {
    Pause& known = pauses_[one.plan.origin];
    if (attempt.pause.until > known.until && !one.noisy() && !one.tunnels()) known = attempt.pause;
  }
  void note_asked(RequestRecord& one) {
    const bool concerns = one.plan.method != kConnect && !may_have_own_connection(one);
    one.pause = concerns ? pauses_[one.plan.origin] : Pause{};
    one.reload = reloads();
  }
  // An origin received the head of one more attempt.
  void check_attempt(const RequestRecord& one, const VirtualWire& wire, bool session) {
    if (now < one.pause.until && resumed == one.pause.resumed)
      complain(one, one.token + " reached an origin during the pause that its client knew of");
    if (!may_reach(one, wire.host)) complain(one, one.token + " reached " + wire.host);
    check_replay(one, session && wire.answered && wire.failed());
    const AttemptRecord* const last = one.attempts.empty() ? nullptr : &one.attempts.back();
    // A session that failed may have lost it.
    const bool told = last != nullptr && last->wants_h1 && !last->wire->failed();
    if (session && told && one.asked == 1 && !late && last->reloads == reloads())
      complain(one, one.token + " was sent over HTTP/2 again though its origin requires HTTP/1.1 for it");
  }
  std::size_t reloads() const { return aliases.size() - 1; }
  // An alias means the origin that a configuration named since the request was sent.
  bool may_reach(const RequestRecord& one, std::string_view host) const {
    const auto leads_there = [&](std::uint32_t moved) {
      return host == "o" + std::to_string((one.plan.origin + moved) % origins) + ".test";
    };
    if (!one.alias) return host == one.host;
    return std::any_of(aliases.begin() + static_cast<std::ptrdiff_t>(one.reload), aliases.end(), leads_there);
  }
  // A client considers its response complete.
  void check_complete(const RequestRecord& one) {
    if (one.ends != 1) complain(one, one.token + " was answered twice");
    if (one.attempt >= one.attempts.size()) return;
    const ResponsePlan& response = one.attempts[one.attempt].response;
    if (one.method() == "HEAD" || response.status == 204 || response.status == 304) return;
    if (one.plan.size == 0 && response.size > 1 && outlasts(response))
      complain(one, one.token + ": a response is whole though its origin was silent for too long");
    if (one.attempts[one.attempt].session && response.size == 0) return;  // complete with its head, whatever follows
    if (one.attempts[one.attempt].session && response.rogue != 0) {
      return complain(one, one.token + ": a response with DATA before its head looks complete");
    }
    const bool session = one.attempts[one.attempt].session;
    const bool cut = response.end != ResponseEnd::whole && response.end != ResponseEnd::surplus;
    if (cut && (response.framing != 2 || response.end != ResponseEnd::fin || session)) {
      return complain(one, one.token + ": a truncated response looks complete");
    }
    if (!cut && one.received != response.size) complain(one, one.token + ": a response lost bytes");
    const bool tail = response.trailers != 0 && one.plan.version == 0 &&
                      (response.framing == 1 || (session && response.framing == 2));
    if (!cut && tail && one.tails == 0) complain(one, one.token + ": a response lost its trailers");
  }
  // The proxy aborted a response: the part of a truncated body that the origin sent must have arrived before. A reset
  // of the origin's connection destroys what the proxy had not read.
  void check_cut(const RequestRecord& one) {
    if (!one.answered || one.attempt >= one.attempts.size()) return;
    const AttemptRecord& attempt = one.attempts[one.attempt];
    if (attempt.wire->failed()) return;
    const ResponsePlan& response = attempt.response;
    const bool short_of_one = response.end == ResponseEnd::fin || response.end == ResponseEnd::silent;
    if (short_of_one && response.framing == 0 && one.received + 1 < response.size) {
      complain(one, one.token + ": bytes of a truncated response were lost");
    }
    if (response.end == ResponseEnd::whole && response.status != 0 && one.plan.size == 0 && may_last(response)) {
      complain(one, one.token + ": a whole response was cut");
    }
  }
  // ---- silence in the middle of a body ----
  bool may_be_silent(const ResponsePlan& response) const { return streams && response.events != 0; }
  bool may_last(const ResponsePlan& response) const {
    return response.lull == 0 || (!bounded && (2 * response.lull < idle.count() || may_be_silent(response)));
  }
  // A reload may treble request.idle_timeout.
  bool outlasts(const ResponsePlan& response) const {
    return idle.count() != 0 && response.end == ResponseEnd::whole && response.lull >= 3 * idle.count() + 2000 &&
           !may_be_silent(response);
  }
  // A client's tunnel ended without a reset.
  void check_tunnel(const RequestRecord& one) {
    if (one.attempts.empty()) return;
    const AttemptRecord& attempt = one.attempts.back();
    const std::uint32_t end = attempt.response.end;
    const bool cut = end == ResponseEnd::reset || end == ResponseEnd::silent || attempt.wire->broken;
    if (!cut && one.received != attempt.response.size) complain(one, one.token + ": a tunnel lost bytes of its origin");
  }
  // At the end of a history: a tunnel that both sides have ended lost no byte of its client.
  void check_closed_tunnels() {
    for (const RequestRecord& one : requests) {
      if (!one.closed || impatient || one.attempts.empty() || one.attempts.back().wire->broken) continue;
      if (one.sent != one.plan.size) complain(one, one.token + ": a tunnel lost bytes of a client that had ended it");
    }
  }
  // A client's tunnel was reset.
  void check_tunnel_cut(const RequestRecord& one) {
    if (one.attempts.empty()) return;
    const AttemptRecord& attempt = one.attempts.back();
    const std::uint32_t end = attempt.response.end;
    const bool cut = end == ResponseEnd::reset || end == ResponseEnd::silent || attempt.wire->broken;
    if (!cut) complain(one, one.token + ": a tunnel was cut that its origin ended in order");
  }
  // A client or an origin read bytes of a body.
  void log_bytes(std::string_view bytes) {
    if (!bytes.empty()) mix(std::hash<std::string_view>{}(bytes));
  }
  void log(std::string_view event, std::uint64_t value = 0) {
    for (const char c : event) mix(static_cast<unsigned char>(c));
    mix(value);
  }

  std::deque<RequestRecord> requests;
  bool noisy_clients = false;
  bool impatient = false;                        // timeouts are short
  bool repeats = false;                          // request.retry_on has every condition
  bool late = false;                             // request.per_try_timeout ends attempts
  bool bounded = false;                          // request.timeout ends requests
  bool streams = false;                          // the profile of the origins is "streaming"
  std::chrono::milliseconds idle{};              // the first request.idle_timeout; zero: as configured
  std::uint32_t secure_from = 0, secure_to = 0;  // the https origins
  std::uint32_t origins = 1;
  bool routes = false;                    // requests name their origins by aliases
  std::vector<std::uint32_t> aliases{0};  // by reload: how many origins further the aliases lead
  Instant now{};
  Duration longest_pause{};                      // zero: Retry-After holds no request
  std::uint64_t resumed = 0;                     // commands of the operator that end pauses
  std::string wrong;                             // the first complaint
  std::uint64_t hash = 14695981039346656037ULL;  // of everything that happened
  std::uint64_t dials = 0;
  static constexpr std::size_t kMaxAttempts = 9;  // max_retries and 8

 private:
  void check_replay(const RequestRecord& one, bool session_failed);
  // The request, or a response to it, authenticates its connection.
  static bool may_own(const RequestRecord& one) {
    const auto& responses = one.plan.responses;
    return one.plan.auth != 0 || std::any_of(responses.begin(), responses.end(),
                                             [](const ResponsePlan& response) { return response.auth != 0; });
  }
  static bool may_repeat(const AttemptRecord& last);
  std::map<std::uint32_t, Pause> pauses_;  // pauses known to clients, by origin
  void mix(std::uint64_t value) { hash = (hash ^ value) * 1099511628211ULL; }
};

// A condition of request.retry_on applies: the status, or an end before the head is complete; bytes that a reset
// destroyed may have contained one.
inline bool Account::may_repeat(const AttemptRecord& last) {
  const ResponsePlan& response = last.response;
  const bool cut = response.end == ResponseEnd::reset || (response.end == ResponseEnd::fin && response.size == 0);
  return response.status == 503 || response.status == 409 || response.status == 0 || response.rogue != 0 || cut ||
         last.wire->failed();
}

// `session_failed`: the proxy has left the session of this attempt or will, and its origin may read only now a request
// that was repeated meanwhile.
inline void Account::check_replay(const RequestRecord& one, bool session_failed) {
  if (one.attempts.size() >= kMaxAttempts * one.asked) complain(one, one.token + " was sent to origins too often");
  std::size_t refused = 0;
  for (const AttemptRecord& attempt : one.attempts) {
    // A session that failed may have lost it: the bytes that were read belong to other streams.
    const bool read = attempt.wire->consumed > attempt.consumed;
    const bool unsure = attempt.session && attempt.wire->failed();
    const bool whole = attempt.response.end != ResponseEnd::silent;  // otherwise the end of its head may be missing
    refused += attempt.response.status == 421 && read && whole && !unsure ? 1 : 0;
  }
  // A client that sends its request again after 417 has one more attempt.
  if (refused > one.asked) complain(one, one.token + " was repeated after a second 421");
  if (one.attempts.empty()) return;
  const AttemptRecord& last = one.attempts.back();
  const ResponsePlan& said = last.response;
  if (last.owned && said.status == 421 && said.end == ResponseEnd::whole && last.wire->consumed > last.consumed &&
      !late)
    complain(one, one.token + " was taken from the connection that authenticated its client");
  const bool harmless = one.method() == "GET" || one.method() == "HEAD";
  // A session counts as one that was idle from its second lease on, and once it has answered.
  const bool unanswered = last.session ? session_failed || (last.wire->answered && last.wire->failed())
                                       : last.was_idle && last.wire->consumed == last.consumed;
  const bool asked_for = late || (repeats && may_repeat(last));
  if (!last.refused && !(harmless && (unanswered || asked_for) && one.body_size() == 0)) {
    complain(one, one.token + " was repeated without proof that it was not processed: attempt " +
                      std::to_string(one.attempts.size()) + ", status " + std::to_string(last.response.status) +
                      (last.session ? ", HTTP/2" : "") + (last.was_idle ? ", was idle" : ", new") +
                      (last.wire->broken ? ", reset" : "") + (last.wire->gone ? ", closed" : ""));
  }
}

}  // namespace carpool::test
