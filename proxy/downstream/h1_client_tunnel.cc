// H1Client, tunnels: the response that opens one, and the FIN of the origin behind the bytes that wait.
#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

void H1Client::send_tunnel(const http::ResponseHead* switched) {
  std::string& out = this->out().text();
  reply_framing_ = http::Framing::none;
  response_end_ = ResponseEnd::delimited;
  if (connect_answered_) return;
  if (switched == nullptr) return write_tunnel_response(out, exchange_->request().version, context_.pseudonym);
  http::ReplyRules rules = reply_rules(false);
  rules.upgrade = true;
  http::write_response(out, *switched, rules);
}

void H1Client::on_tunnel() {
  reader_.reset();
  run_soon();
}

void H1Client::shut_write_when_sent() {
  if (write_queue_.empty()) {
    transport_->shut_write();
  } else {
    shut_after_flush_ = true;
  }
}

}  // namespace carpool::proxy
