// H1Client, CONNECT to an intercepted origin: the client gets its 200, and what it sends then is TLS that ends here. A
// client whose TLS cannot end here comes back with its CONNECT answered.
#include <utility>

#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"

namespace carpool::proxy {

// Returns true if this client is over. `more`: bytes that were read behind the head.
bool H1Client::ends_connect_here(std::size_t more) {
  if (connect_answered_ || !write_queue_.empty() || out_) return false;
  std::unique_ptr<InterceptedConnect> connect =
      clients_.interceptor().accept(*this, transport_->fd(), exchange_->request(), more);
  if (connect == nullptr) return false;
  write_tunnel_answer(out().text(), exchange_->request().version, context_.pseudonym);
  context_.exchanges.give_back(*std::exchange(exchange_, nullptr));
  if (!flush() || !write_queue_.empty()) {  // a client that takes not even these bytes
    lost();
    return true;
  }
  state_ = State::closed;
  handed_over_ = true;
  timer_.disarm();
  exec::Deferred::unlink();
  context_.loop.unwatch(transport_->fd(), key_);
  clients_.intercept(listener_, std::move(connect), transport_->release_socket(), peer_);
  return true;
}

Status H1Client::start(std::string head) {
  connect_answered_ = true;
  preface_ = kNoPreface;
  pending_ = std::move(head);
  if (Status started = start(); !started) return started;
  run_soon();
  return Done{};
}

}  // namespace carpool::proxy
