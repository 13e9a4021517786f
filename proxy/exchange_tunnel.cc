// An exchange that became a tunnel, by 101 or CONNECT: bytes both ways until both sides said their last word.
#include "proxy/exchange.h"
#include "proxy/worker.h"

namespace carpool::proxy {

bool Exchange::on_switched(std::string_view rest) {
  facts_.status = 101;
  facts_.head_back = worker_.loop().now();
  lease_.become_tunnel();
  enter(ExchangeEvent::switched);
  requester_->send_tunnel(&response_);
  requester_->send_body(rest);
  facts_.bytes_out += rest.size();
  if (!flush_reply()) return false;
  requester_->on_tunnel();
  touch();
  return true;
}

// CONNECT: the connection is there, and nothing of the request travels on it.
void Exchange::open_tunnel() {
  facts_.status = 200;
  lease_.become_tunnel();
  enter(ExchangeEvent::switched);
  requester_->send_tunnel(nullptr);
  if (!flush_reply()) return;
  requester_->on_tunnel();
  touch();
  carrier_->open_tunnel();
}

void Exchange::on_tunnel_bytes(std::string_view bytes) {
  facts_.bytes_in += bytes.size();
  carrier_->send_body(bytes);
}

void Exchange::on_tunnel_input_end() {
  tunnel_client_eof_ = true;
  if (tunnel_over()) return end_tunnel();
  carrier_->shut_write_when_sent();
}

void Exchange::on_tunnel_eof() {
  upstream_eof_ = true;
  requester_->shut_write_when_sent();
  if (tunnel_over()) end_tunnel();
}

// Both sides said their last word, and all of it is on its way.
bool Exchange::tunnel_over() const {
  return upstream_eof_ && (carrier_->deaf() || (tunnel_client_eof_ && carrier_->backlog() == 0));
}

void Exchange::end_tunnel() {
  give_back(pool::Closed::tunnel_ended);
  enter(ExchangeEvent::ended);
  rest(ClientNext::close);
}

}  // namespace carpool::proxy
