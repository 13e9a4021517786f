// PauseCheck: the oracle of the pauses that origins request, as the pool reports them: during a pause no exchange is
// given a connection, and no pause exceeds the limit; after it one exchange at a time is given a connection until the
// origin has responded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "pool/destination/destination.h"
#include "pool/policy/cool_down.h"
#include "pool/queue/wait_queue.h"
#include "proxy/exchange/exchange.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "tests/sim/data_plane/account.h"

namespace carpool::test {

class PauseCheck {
 public:
  // Without `longest` no origin pauses.
  PauseCheck(Account& account, Duration longest) : account_(account), longest_(longest) {}

  // Must be called after every turn: look() with every destination, see() with every exchange, then end_turn().
  void look(const pool::Destination& destination, Instant now) {
    if (longest_ == Duration::zero()) return;
    Pause& pause = pauses_[&destination];
    // The pool that a reload makes counts no pause that it takes over.
    if (const auto left = destination.cooling(now)) pause = {1 + destination.snapshot(now).cool_downs, *left};
    if (pause.left > longest_) account_.complain("an origin pauses longer than pool.max_cool_down");
  }
  void see(const proxy::Exchange& exchange, Instant now) LOOP_ONLY {
    if (longest_ == Duration::zero() || exchange.info().origin == nullptr || !left_queue(exchange)) return;
    const RequestRecord* const one = account_.find_token(exchange.request().fields.get(kMarkField));
    if (one == nullptr || account_.may_have_own_connection(*one)) return;
    const pool::Destination& destination = *exchange.info().origin->destination;
    const auto before = old_.find(&exchange);
    const bool known = before != old_.end() && before->second.of == &destination;
    Seen& seen = seen_[&exchange] = known ? before->second : first_seen(destination, now);
    const bool was_lent = std::exchange(seen.lent, exchange.holds_lease());
    if (!seen.lent || was_lent || !seen.ahead) return;
    seen.since = now;
    if (seen.during) account_.complain("a request got a connection while its origin pauses");
  }
  void end_turn(Instant now) {
    for (const auto& [exchange, seen] : seen_) {
      if (seen.ahead && seen.lent && seen.since == now) check_alone(*exchange, seen, now);
    }
    old_ = std::exchange(seen_, {});
    before_ = std::exchange(pauses_, {});
  }

 private:
  struct Pause {
    std::uint64_t number = 0;  // 0: none
    Duration left{};           // zero: it has ended, and trials follow
  };
  // An exchange that has a connection, or a grant or a rejection in flight.
  struct Seen {
    const pool::Destination* of = nullptr;
    std::uint64_t number = 0;  // of the pause, when the exchange left the queue
    bool ahead = false;        // that pause was known before
    bool during = false;       // and had not ended
    bool lent = false;
    Instant since{};
  };

  static bool left_queue(const proxy::Exchange& exchange) LOOP_ONLY {
    const bool granted = exchange.state() == proxy::ExchangeState::borrowing && !pool::WaitQueue::in(exchange);
    return exchange.state() != proxy::ExchangeState::idle && (exchange.holds_lease() || granted);
  }
  Seen first_seen(const pool::Destination& destination, Instant now) {
    const Pause pause = pauses_[&destination];
    const bool ahead = lasts(destination, pause);
    return {&destination, pause.number, ahead, ahead && pause.left > Duration::zero(), false, now};
  }
  // The pause was the same before this turn.
  bool lasts(const pool::Destination& destination, const Pause& pause) const {
    const auto before = before_.find(&destination);
    return pause.number != 0 && before != before_.end() && before->second.number == pause.number;
  }
  void check_alone(const proxy::Exchange& exchange, const Seen& one, Instant now) {
    for (const auto& [other, seen] : seen_) {
      const bool trial = other != &exchange && seen.of == one.of && seen.ahead && seen.lent;
      if (trial && seen.number == one.number && now - seen.since < pool::CoolDown::kTrialTime)
        account_.complain("a request got a connection while another one tries whether its origin's pause is over");
    }
  }

  Account& account_;
  const Duration longest_;
  std::map<const proxy::Exchange*, Seen> seen_, old_;  // in this turn, and in the previous one
  std::map<const pool::Destination*, Pause> pauses_, before_;
};

}  // namespace carpool::test
