// Exchange, leaks: the description and the end of an exchange that holds its connection longer than the origin's
// leak_timeout.
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/exchange/trace_context.h"
#include "proxy/http/redact.h"
#include "proxy/net/peer_credentials.h"
#include "proxy/net/socket_processes.h"
#include "proxy/telemetry/leak_record.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

BorrowerInfo Exchange::describe_borrower() const {
  BorrowerInfo borrower;
  borrower.connection = info_.connection;
  std::string scratch;
  borrower.request.append(request_.method).append(" ").append(info_.origin->destination->label());
  borrower.request.append(http::redacted(request_values_->path, scratch));
  borrower.phase = phase();
  const PeerCredentials peer = peer_of(client_stream_->socket());
  borrower.client = client_stream_->listen().proxy_protocol ? std::string(client_stream_->peer()) : peer.address;
  borrower.user = user_;
  borrower.pid = peer.pid;
  borrower.uid = peer.uid;
  if (!borrower.pid && peer.inode && context_.processes != nullptr) {
    const auto found = context_.processes->find(*peer.inode, *context_.tasks, context_.loop.now());
    if (found.pid != 0) borrower.pid = found.pid;  // otherwise the next report may contain it
  }
  borrower.trace_id = trace_id(request_.fields.get("traceparent"));
  borrower.held = context_.loop.now() - info_.leased;
  borrower.bytes_in = info_.bytes_in;
  borrower.bytes_out = info_.bytes_out;
  return borrower;
}

void Exchange::end_leaked() {
  Fault fault{FaultKind::request_timeout, Side::self, "pool.leak_timeout passed while " + std::string(phase())};
  if (state_ != ExchangeState::relaying) {
    abandon_attempt(pool::CloseCause::leak);
    return reply(fault);
  }
  info_.fault = std::move(fault);
  static_cast<void>(client_stream_->flush());  // the part that was received
  abandon_attempt(pool::CloseCause::leak);
  enter(ExchangeEvent::broken);
  finish(AfterExchange::cut);
}

// Records that a reported lease was given back.
void Exchange::close_leak() {
  if (attempt_->leak == 0) return;
  context_.leaks.returned(attempt_->leak, context_.loop.now() - info_.leased);
}

}  // namespace carpool::proxy
