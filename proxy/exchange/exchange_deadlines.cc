#include "proxy/exchange/exchange_deadlines.h"

#include <algorithm>

namespace carpool::proxy {

void ExchangeDeadlines::await_dial(Instant now) {
  const Instant check = now + kDialCheckInterval;
  wait_at_ = check < dial_at_ ? check : dial_at_ + kDialReports;
}

Deadline ExchangeDeadlines::passed(ExchangeState state, Instant now, const Awaited& awaited) const {
  if (now >= total_at_) return Deadline::total;
  if (now >= body_check_at_ && state == ExchangeState::collecting) return Deadline::body_check;
  if (now >= rate_at_ && measurable(state)) return streams_body() ? Deadline::streamed_rate : Deadline::body_rate;
  const bool reader_behind = state == ExchangeState::relaying && reader_behind_ && now < others_at_;
  if (now >= rate_at_ && reader_behind) return Deadline::reader_rate;
  switch (state) {
    case ExchangeState::idle:
      break;
    case ExchangeState::collecting:
      return Deadline::client_sends;
    case ExchangeState::authorizing:
      return Deadline::token_wait;
    case ExchangeState::borrowing:
      return awaited.dialing && now < dial_at_ + kDialReports ? Deadline::dial_wait : Deadline::pool_wait;
    case ExchangeState::forwarding:
      if (now >= attempt_at(awaited.body_ended)) return Deadline::attempt;
      if (silent_ && !awaited.origin_queued) return Deadline::stream_idle;
      if (awaited.body_ended && !silent_) return Deadline::response_head;
      if (awaited.origin_queued) return Deadline::origin_reads;
      return awaited.continues ? Deadline::continue_head : Deadline::client_sends;
    case ExchangeState::relaying:
    case ExchangeState::tunnel:
      if (awaited.client_queued) return Deadline::client_reads;
      if (awaited.origin_queued)
        return state == ExchangeState::tunnel ? Deadline::origin_reads : Deadline::origin_sends;
      if (silent_) return Deadline::stream_idle;
      // While the client may send, the origin may wait for it: its silence is no failure.
      return state == ExchangeState::relaying && awaited.body_ended ? Deadline::origin_sends : Deadline::both_silent;
  }
  CARPOOL_ASSERT(false);
  return Deadline::total;
}

Instant ExchangeDeadlines::forwarding_deadline(Instant now, bool body_ended) const {
  if (silent_) return deadline_after(now, limits_->idle_timeout);
  const Duration limit = body_ended ? limits_->response_header_timeout : limits_->idle_timeout;
  if (limit <= Duration::zero()) return kNever;
  return std::min(std::max(sent_at_, informed_at_) + limit, sent_at_ + 2 * limit);
}

}  // namespace carpool::proxy
