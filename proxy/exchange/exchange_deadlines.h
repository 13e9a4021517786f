// ExchangeDeadlines: when an exchange must act next, and which deadline has passed. Pure: the exchange reports its
// steps with their times, and calls passed() with its observations. deadline_table.h defines the consequence of each
// deadline. The functions of the steady path are inline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "proxy/config/config.h"
#include "proxy/exchange/body_rate.h"
#include "proxy/exchange/transition_table.h"

namespace carpool::proxy {

enum class Deadline : std::uint8_t {
  total,          // request.timeout, from the head to the end
  body_check,     // time to check whether a body that is too large to be collected is streamed
  body_rate,      // listen.body_min_rate
  streamed_rate,  // listen.body_min_rate of a body that ends only if others wait for its connection
  token_wait,     // oauth2.timeout
  pool_wait,      // pool.wait_timeout
  dial_wait,      // pool.wait_timeout, while only a dial, which has its own deadline, can serve the request
  client_sends,   // request.idle_timeout: no byte of the request's body arrives
  continue_head,  // request.idle_timeout: neither 100 (Continue), for which the client waits, nor a final head
  origin_reads,   // request.idle_timeout: the origin accepts no byte of the request's body or of the tunnel
  response_head,  // request.response_header_timeout
  attempt,        // request.per_try_timeout: no response head of this attempt
  origin_sends,   // request.idle_timeout: no byte of the response arrives
  both_silent,    // request.idle_timeout: no byte in either direction while the client may still send
  client_reads,   // request.idle_timeout: the client accepts no byte of the response
  reader_rate,    // listen.body_min_rate of a response: its client accepts fewer bytes
  stream_idle,    // request.idle_timeout of a stream that may be silent: no byte waits on either side
};

// RateRule: when a body below listen.body_min_rate ends.
enum class RateRule : std::uint8_t {
  always,
  if_wanted,  // while a request waits for the connection that the body occupies
};

// Awaited: identifies the side that is awaited when a deadline passes.
struct Awaited {
  bool body_ended = false;     // the whole request body was received
  bool origin_queued = false;  // bytes wait to be written to the origin
  bool client_queued = false;  // bytes wait to be written to the client
  bool dialing = false;        // only a dial in progress can serve the request, or its result is on the way
  bool continues = false;      // the client waits for the origin's 100 (Continue) before it sends the body
};

class ExchangeDeadlines final {
 public:
  // ---- the steps of a request ----
  void begin(Instant now, const config::Request& limits) {
    limits_ = &limits;
    total_at_ = deadline_after(now, limits.timeout);
  }
  // Must be called when another destination serves the request. request.timeout stays.
  void use(const config::Request& limits) { limits_ = &limits; }
  void measure_body(Instant now, const config::Listen& listen, RateRule rule) {
    rate_.begin(now, listen);
    rate_rule_ = rule;
    check_at_ = {};
  }
  bool streams_body() const { return rate_rule_ == RateRule::if_wanted; }
  // Must be called when streamed_rate or reader_rate has passed and no request waits for the connection. Returns the
  // next deadline; a check extends no other.
  Instant check_again(Instant now) {
    rate_at_ = check_at_ = now + kCheckInterval;
    return std::min(rate_at_, others_at_);
  }
  void check_body(Instant at) { body_check_at_ = at; }
  void body_may_be_sent() { body_check_at_ = kNever; }
  void wait(Instant now, const config::PoolSettings& limits) {
    waiting_since_ = now;
    wait_at_ = now + limits.wait_timeout;
    dial_at_ = now + limits.connect_timeout;
  }
  void await_token(Instant now, Duration limit) { token_at_ = now + limit; }
  // Must be called when dial_wait has passed. The wait is checked again, because another request may get the connection
  // of the dial, or another connection may open.
  void await_dial(Instant now);
  Duration waited(Instant now) const { return now - waiting_since_; }
  void lease(Instant now) {
    wait_at_ = kNever;
    sent_at_ = now;
    hedge_ended(now);
  }
  // Two attempts are in progress: request.per_try_timeout ends neither.
  void hedge() { hedged_ = true; }
  // One attempt is in progress, and has request.per_try_timeout from now on.
  void hedge_ended(Instant now) {
    hedged_ = false;
    sole_attempt_since_ = now;
  }
  void sent(Instant now) { sent_at_ = now; }
  // Must be called when the client could not be read until now.
  void client_was_paused(Instant now, std::uint64_t received) { rate_.renew(now, received); }
  // Must be called when the queue to the origin drained. A client that was not read because of it gets a new grace
  // period.
  void origin_accepted(Instant now, std::uint64_t received) {
    sent_at_ = now;
    if (rate_at_ == kNever) rate_.renew(now, received);
  }
  // From now on silence ends nothing; only a side that does not accept waiting bytes does.
  void allow_silence() { silent_ = true; }
  void inform(Instant now) { informed_at_ = now; }
  bool informed() const { return informed_at_ != Instant{}; }  // a 1xx response arrived

  // ---- the next deadline ----
  // Returns true if the rate of the body counts now. A response that has begun is limited by the origin's deadlines.
  bool measures_body(ExchangeState state, bool body_ended) const {
    return rate_.counts() && !body_ended && measurable(state) && !(streams_body() && silent_);
  }
  // Must be called before next() if measures_body(), with the bytes received so far; otherwise call do_not_measure().
  // `read`: carpool reads from the client. Time in which it does not read does not count.
  void measure(Instant now, std::uint64_t received, bool read) {
    if (!read) rate_.renew(now, received);
    rate_at_ = read ? std::max(rate_.deadline(now, received, limits_->idle_timeout), check_at_) : kNever;
  }
  void do_not_measure() { rate_at_ = kNever; }
  // Must be called before next() while bytes of a response wait to be written to the client, with the bytes that the
  // client has accepted so far; otherwise call reader_caught_up(). The grace period begins with the first of these
  // calls.
  void measure_reader(Instant now, const config::Listen& listen, std::uint64_t accepted) {
    if (silent_) return reader_caught_up();
    if (!std::exchange(reader_behind_, true)) {
      rate_.begin(now, listen);
      rate_.renew(now, accepted);
      check_at_ = {};
    }
    rate_at_ = std::max(rate_.deadline(now, accepted, limits_->idle_timeout), check_at_);
  }
  void reader_caught_up() {
    reader_behind_ = false;
    rate_at_ = kNever;
  }
  // Returns the next deadline. Must be called after every step and whenever a byte moved.
  Instant next(ExchangeState state, Instant now, bool body_ended) {
    others_at_ = std::min(state_deadline(state, now, body_ended), total_at_);
    return std::min(others_at_, rate_at_);
  }
  // Returns the deadline that has passed. Must be called at next() or later.
  Deadline passed(ExchangeState state, Instant now, const Awaited& awaited) const;

 private:
  // Returns true in the states for which the table has a row with the body's rate.
  bool measurable(ExchangeState state) const {
    if (streams_body()) return state == ExchangeState::forwarding;
    return state != ExchangeState::relaying && state != ExchangeState::tunnel;
  }
  static constexpr Duration kCheckInterval = std::chrono::seconds(1);  // between two checks for waiters
  static constexpr Duration kDialCheckInterval = std::chrono::milliseconds(250);
  static constexpr Duration kDialReports = std::chrono::milliseconds(100);

  Instant state_deadline(ExchangeState state, Instant now, bool body_ended) const {
    switch (state) {
      case ExchangeState::idle:
        break;
      case ExchangeState::collecting:
        return std::min(deadline_after(now, limits_->idle_timeout), body_check_at_);
      case ExchangeState::authorizing:
        return token_at_;
      case ExchangeState::borrowing:
        return wait_at_;
      case ExchangeState::forwarding:
        return std::min(attempt_at(body_ended), forwarding_deadline(now, body_ended));
      case ExchangeState::relaying:
      case ExchangeState::tunnel:
        return deadline_after(now, limits_->idle_timeout);
    }
    CARPOOL_ASSERT(false);
    return kNever;
  }
  // The time of an attempt counts while the origin has the whole request, because a slow client is not the origin's
  // failure.
  Instant attempt_at(bool body_ended) const {
    if (!body_ended || hedged_) return kNever;
    return deadline_after(std::max(sent_at_, sole_attempt_since_), limits_->per_try_timeout);
  }
  // Bytes of a head do not extend its deadline, otherwise an origin that sends one byte at a time would never time out.
  // A complete 1xx head does, to at most twice the limit in total.
  Instant forwarding_deadline(Instant now, bool body_ended) const;

  const config::Request* limits_ = nullptr;
  Instant total_at_ = kNever;
  Instant body_check_at_ = kNever;  // collecting: when to check whether the body streams
  Instant token_at_ = kNever;
  Instant wait_at_ = kNever;
  Instant check_at_{};          // when to check for waiters again, at the earliest
  Instant rate_at_ = kNever;    // when the body falls below its rate; kNever while it is not measured
  Instant others_at_ = kNever;  // the other deadlines, as of the last next()
  Instant waiting_since_{};
  Instant dial_at_{};             // time by which a dial in progress has ended
  Instant sent_at_{};             // when bytes of the request were last sent in this attempt
  Instant informed_at_{};         // time of the last 1xx
  Instant sole_attempt_since_{};  // since then this attempt is the only one
  BodyRate rate_;
  bool silent_ = false;
  RateRule rate_rule_ = RateRule::always;
  bool hedged_ = false;
  bool reader_behind_ = false;  // rate_ is that of the client that reads the response
};

}  // namespace carpool::proxy
