// H1Client, output: collects the parts of a response in this connection's batch and sends them in flush().
#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/max_forwards_reply.h"
#include "proxy/http/error_reply.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

http::ReplyRules H1Client::reply_rules(bool close) const {
  const http::RequestHead& request = exchange_->request();
  http::ReplyRules rules;
  rules.via_pseudonym = context_.pseudonym;
  rules.client_version = request.version;
  rules.close = close;
  rules.head_request = request.has_method("HEAD");
  rules.keep_alive = http::announced_keep_alive(listen_.idle_timeout);
  return rules;
}

// Decides whether the connection persists after a reply of carpool's own. `keep`: the exchange permits it.
http::ReplyRules H1Client::begin_local_reply(bool keep) {
  const bool private_over = private_state_ == PrivateState::lent || private_state_ == PrivateState::broken;
  const bool close = !keep || drain_ != Drain::none || private_over;
  response_end_ = close ? ResponseEnd::closes : ResponseEnd::persists;
  http::ReplyRules rules = reply_rules(close);
  rules.date = context_.wall_clock();
  return rules;
}

BatchLease& H1Client::out() {
  if (!out_) out_ = context_.buffers.lease_batch(write_queue_, *transport_);
  return out_;
}

bool H1Client::send_informational(const http::ResponseHead& head) {
  if (exchange_->request().version != http::Version::http11) return true;
  // A client that has left resets the connection when it gets this; one that stays waits for its response. Before its
  // FIN it tells neither.
  informed_ = informed_ || fin_ != Fin::none || transport_->hangup_seen();
  http::write_informational(out().text(), head, context_.pseudonym);
  return flush();
}

bool H1Client::send_head(const http::ResponseHead& head, bool close) {
  http::ReplyRules rules = reply_rules(close || drain_ != Drain::none || private_state_ == PrivateState::broken);
  reply_framing_ = http::reply_framing(head, rules);
  const bool delimited = reply_framing_ == http::Framing::until_close;
  if (delimited) rules.close = true;
  response_end_ = delimited ? ResponseEnd::delimited : rules.close ? ResponseEnd::closes : ResponseEnd::persists;
  http::write_response(out().text(), head, rules);
  return rules.close;
}

void H1Client::send_body(std::string_view bytes) {
  if (bytes.empty()) return;
  BatchLease& out = this->out();
  if (reply_framing_ != http::Framing::chunked) return out.add(bytes);
  http::write_chunk_head(out.text(), bytes.size());
  out.add(bytes);
  out.text().append("\r\n");
}

void H1Client::send_end(const http::Fields& trailers) {
  if (reply_framing_ == http::Framing::chunked) http::write_last_chunk(out().text(), trailers);
}

std::uint16_t H1Client::send_fault(const Fault& fault, bool keep) {
  const http::ReplyRules rules = begin_local_reply(keep);
  if (!connect_answered_) return http::write_error_reply(out().text(), fault, rules);
  response_end_ = ResponseEnd::truncated;  // the client already uses the tunnelled protocol
  std::string unsent;
  return http::write_error_reply(unsent, fault, rules);
}

void H1Client::send_local_reply(bool keep) {
  write_max_forwards_reply(out().text(), exchange_->request(), begin_local_reply(keep));
}

bool H1Client::flush() {
  if (!out_.empty()) return out_.send() != WriteQueue::Sent::failed;
  out_.discard();
  return true;
}

// Sends what the ended exchange collected, or discards it if the client is gone.
AfterExchange H1Client::end_batch(AfterExchange next) {
  if (next != AfterExchange::gone) return flush() ? next : AfterExchange::gone;
  out_.discard();
  return next;
}

}  // namespace carpool::proxy
