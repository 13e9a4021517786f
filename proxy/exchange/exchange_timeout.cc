// Exchange, timeouts: arms its timer for the next deadline of ExchangeDeadlines; the table gives the action.
#include <algorithm>
#include <utility>

#include "proxy/exchange/deadline_table.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

void Exchange::arm_deadline() {
  if (state_ == ExchangeState::idle) return;
  ExchangeDeadlines& deadlines = request_values_->deadlines;
  const Instant now = context_.loop.now();
  const bool ended = all_received();
  if (state_ == ExchangeState::relaying) {
    measure_reader(now);
  } else {
    deadlines.measures_body(state_, ended) ? deadlines.measure(now, request_body_.received(), wants_input())
                                           : deadlines.do_not_measure();
  }
  timer_.arm(deadlines.next(state_, now, ended));
}

void Exchange::measure_reader(Instant now) {
  ExchangeDeadlines& deadlines = request_values_->deadlines;
  if (client_stream_->backlog() == 0) return deadlines.reader_caught_up();
  deadlines.measure_reader(now, client_stream_->listen(), client_stream_->accepted());
}

void Exchange::on_deadline() {
  exec::assume_on_loop();
  const Instant now = context_.loop.now();
  const std::size_t index = deadline_row(state_, request_values_->deadlines.passed(state_, now, awaited()));
  CARPOOL_ASSERT(index != kNoDeadlineRow);
  const DeadlineRow& row = kDeadlineTable[index];
  switch (row.action) {
    case DeadlineAction::check_body:
      request_values_->deadlines.body_may_be_sent();
      return continue_attempt();
    case DeadlineAction::await_dial:
      request_values_->deadlines.await_dial(now);
      return arm_deadline();
    case DeadlineAction::rearm:
      return arm_deadline();
    case DeadlineAction::try_again:
      return on_late_attempt(fault_of(row));
    case DeadlineAction::yield:
      if (!connection_wanted()) return timer_.arm(request_values_->deadlines.check_again(now));
      [[fallthrough]];
    case DeadlineAction::slow_body:
      context_.stats.count(metrics::GivenUp::slow_body);
      return fail(fault_of(row));
    case DeadlineAction::yield_read:
      return on_slow_reader(row.detail);
    case DeadlineAction::client_left:
      context_.stats.count(metrics::GivenUp::unread);
      return on_client_timed_out(row.detail);
    case DeadlineAction::fail:
      if (row.side == Side::upstream) {
        static_cast<Connection&>(*attempt_->lease).note_failure(now);
        if (attempt_->dropped) return retry_after_end();  // the retry is decided and counted
        if (continue_with_hedge()) return;
      }
      return fail(fault_of(row));
  }
}

void Exchange::on_slow_reader(std::string_view rule) {
  if (!connection_wanted()) return timer_.arm(request_values_->deadlines.check_again(context_.loop.now()));
  context_.stats.count(metrics::GivenUp::slow_reader);
  on_client_timed_out(rule);
}

// Returns true if another request has waited for this one's connection longer than a busy pool makes it wait.
bool Exchange::connection_wanted() const {
  constexpr Duration kMinWait = std::chrono::milliseconds(100);
  const Instant now = context_.loop.now();
  if (!attempt_->lease.wanted(std::min(kMinWait, info_.origin->pool.wait_timeout / 2), now)) return false;
  // A stream on a session of another loop serves the waiter only after a message there and back.
  return !attempt_->lease.shared() || info_.origin->yields.admit(now);
}

// Returns true while the client may wait for 100 (Continue) before it sends its body.
bool Exchange::awaits_continue() const {
  return request_.expect_continue && !request_values_->continued && request_body_.received() == 0;
}

Awaited Exchange::awaited() const {
  Awaited awaited;
  awaited.continues = awaits_continue();
  awaited.body_ended = all_received();
  awaited.origin_queued = attempt_ && attempt_->upstream_stream->backlog() != 0;
  awaited.client_queued = client_stream_->backlog() != 0;
  awaited.dialing = state_ == ExchangeState::borrowing && info_.origin->destination->awaits_dial(*this);
  return awaited;
}

Fault Exchange::fault_of(const DeadlineRow& row) const {
  Fault fault{row.kind, row.side, std::string(row.detail)};
  if (row.deadline == Deadline::total) fault.detail.append(phase());
  if (row.deadline == Deadline::pool_wait) add_retry_after(fault);
  if (row.deadline == Deadline::pool_wait && info_.origin->destination->paused())
    fault.detail = pool::kPausedByOperator;
  return fault;
}

std::string_view Exchange::phase() const {
  switch (state_) {
    case ExchangeState::idle:
      return "idle";
    case ExchangeState::collecting:
      return "reading the request body";
    case ExchangeState::authorizing:
      return "waiting for a token";
    case ExchangeState::borrowing: {
      if (info_.origin->destination->paused()) return "waiting for an origin that an operator paused";
      if (info_.origin->destination->cooling(context_.loop.now()))
        return "waiting because the origin asked for a pause";
      if (info_.origin->destination->probing()) return "waiting for the probe of an origin whose last dial failed";
      const std::string_view dial = context_.dialer.phase_of(*info_.origin);
      if (!dial.empty()) return dial;
      return info_.origin->dialing() ? "connecting" : "waiting for a connection";
    }
    case ExchangeState::forwarding:
      if (all_received()) return "waiting for the response head";
      return awaits_continue() ? "waiting for 100 (Continue)" : "sending the request body";
    case ExchangeState::relaying:
      return "receiving the response body";
    case ExchangeState::tunnel:
      return "in a tunnel";
  }
  return "";
}

}  // namespace carpool::proxy
