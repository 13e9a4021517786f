// An exchange that became a tunnel, by 101 or CONNECT: bytes both ways until both sides said their last word.
#include <algorithm>

#include "proxy/downstream/client.h"
#include "proxy/exchange.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"

namespace carpool::proxy {

// ---- tunnel: bytes both ways after 101 ----

void Exchange::switch_protocols(std::string_view rest) {
  facts_.status = 101;
  facts_.head_back = worker_.loop().now();
  lease_.become_tunnel();
  enter(ExchangeEvent::switched);
  http::ReplyRules rules = reply_rules();
  rules.upgrade = true;
  Gather& out = worker_.to_client();
  http::write_response(out.text(), response_, rules);
  out.add(rest);
  facts_.bytes_out += rest.size();
  if (!client_->send(out)) return on_client_gone();
  client_->on_tunnel();
  touch();
  relay_tunnel();
}

// CONNECT: the connection is there, and nothing of the request travels on it.
void Exchange::open_tunnel() {
  facts_.status = 200;
  lease_.become_tunnel();
  enter(ExchangeEvent::switched);
  Gather& out = worker_.to_client();
  write_tunnel_answer(out.text(), request_.version, worker_.pseudonym());
  if (!client_->send(out)) return on_client_gone();
  client_->on_tunnel();
  touch();
  if (upstream().transport().maybe_readable()) worker_.loop().defer(*this);  // it may speak first, and have spoken
}

void Exchange::on_tunnel_bytes(std::string_view bytes) {
  facts_.bytes_in += bytes.size();
  worker_.to_upstream().add(bytes);
}

void Exchange::on_tunnel_eof() {
  tunnel_client_eof_ = true;
  if (tunnel_over()) return end_tunnel();
  if (upload_.outbox.empty()) upstream().transport().shut_write();
}

void Exchange::relay_tunnel() {
  net::Transport& transport = upstream().transport();
  if (tunnel_over()) return end_tunnel();
  if (tunnel_client_eof_ && upload_.outbox.empty()) transport.shut_write();
  std::size_t budget = kTurnBytes;
  while (!upstream_eof_ && client_->backlog() < kHighMark && transport.maybe_readable()) {
    if (budget == 0) {
      if (!exec::Deferred::linked()) worker_.loop().defer(*this);
      return;
    }
    const std::span<char> scratch = worker_.loop().scratch();
    const net::IoResult io = transport.read(scratch);
    if (io.io == net::Io::would_block) return;
    if (io.io == net::Io::failed)
      return break_off({FaultKind::connection_terminated, Side::upstream, std::string(io.detail)});
    if (io.io == net::Io::eof) {
      upstream_eof_ = true;
      client_->shut_write_when_sent();
      if (tunnel_over()) end_tunnel();
      return;
    }
    budget -= std::min(budget, io.bytes);
    facts_.bytes_out += io.bytes;
    worker_.to_client().add({scratch.data(), io.bytes});
    if (!flush_reply()) return;
    touch();
  }
}

// Both sides said their last word, and all of it is on its way.
bool Exchange::tunnel_over() const {
  return upstream_eof_ && (write_failed_ || (tunnel_client_eof_ && upload_.outbox.empty()));
}

void Exchange::end_tunnel() {
  give_back(pool::Closed::tunnel_ended);
  enter(ExchangeEvent::ended);
  rest(ClientNext::close);
}

}  // namespace carpool::proxy
