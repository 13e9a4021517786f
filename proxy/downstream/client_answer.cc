// What a client of HTTP/1.1 is answered, written into the loop's gather as it comes and sent from there.
#include "proxy/downstream/client.h"
#include "proxy/http/fault_reply.h"
#include "proxy/local_answer.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"

namespace carpool::proxy {

http::ReplyRules Client::reply_rules(bool close) const {
  const http::RequestHead& request = exchange_->request();
  http::ReplyRules rules;
  rules.via_pseudonym = worker_.pseudonym();
  rules.client_version = request.version;
  rules.close = close;
  rules.head_request = request.method == "HEAD";
  return rules;
}

void Client::send_informational(const http::ResponseHead& head) {
  if (exchange_->request().version != http::Version::http11) return;
  http::write_informational(worker_.to_client().text(), head, worker_.pseudonym());
}

bool Client::send_head(const http::ResponseHead& head, bool close) {
  http::ReplyRules rules = reply_rules(close);
  reply_framing_ = http::reply_framing(head, rules);
  if (reply_framing_ == http::Framing::until_close) rules.close = true;
  http::write_response(worker_.to_client().text(), head, rules);
  return rules.close;
}

void Client::send_body(std::string_view bytes) {
  Gather& out = worker_.to_client();
  if (reply_framing_ != http::Framing::chunked) return out.add(bytes);
  if (bytes.empty()) return;
  http::write_chunk_head(out.text(), bytes.size());
  out.add(bytes);
  out.text().append("\r\n");
}

void Client::send_end(const http::Fields& trailers) {
  if (reply_framing_ == http::Framing::chunked) http::write_last_chunk(worker_.to_client().text(), trailers);
}

std::uint16_t Client::send_fault(const Fault& fault, bool keep) {
  const http::RequestHead& request = exchange_->request();
  Gather& out = worker_.to_client();
  out.clear();
  return http::write_fault_reply(out.text(), fault, request.version, !keep, request.method == "HEAD",
                                 worker_.pseudonym());
}

void Client::send_local_answer(bool keep) {
  write_local_answer(worker_.to_client().text(), exchange_->request(), worker_.pseudonym(), !keep);
}

void Client::send_tunnel(const http::ResponseHead* switched) {
  std::string& out = worker_.to_client().text();
  reply_framing_ = http::Framing::none;
  if (switched == nullptr) return write_tunnel_answer(out, exchange_->request().version, worker_.pseudonym());
  http::ReplyRules rules = reply_rules(false);
  rules.upgrade = true;
  http::write_response(out, *switched, rules);
}

bool Client::flush() {
  Gather& out = worker_.to_client();
  return out.empty() || outbox_.send(*transport_, out, worker_.pieces()) != Outbox::Sent::failed;
}

void Client::drop() {
  worker_.to_client().clear();
}

void Client::on_tunnel() {
  reader_.reset();
  run_soon();
}

void Client::shut_write_when_sent() {
  if (outbox_.empty()) {
    transport_->shut_write();
  } else {
    shut_when_sent_ = true;
  }
}

}  // namespace carpool::proxy
