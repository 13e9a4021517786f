// H1Client, CONNECT to an intercepted origin: the client gets its 200, and then begins TLS with carpool. A client whose
// TLS cannot be intercepted becomes an H1Client again, with its CONNECT answered.
#include <utility>

#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"

namespace carpool::proxy {

// Returns true if this client has ended. `more`: number of bytes read after the head.
bool H1Client::ends_connect_here(std::size_t more) {
  if (connect_answered_) return false;
  const bool early = more != 0 || !write_queue_.empty() || out_;
  std::optional<metrics::Intercept> obstacle;
  if (secured() || early) obstacle = secured() ? metrics::Intercept::in_tls : metrics::Intercept::early;
  auto [connect, why] = clients_.interceptor().accept(*this, exchange_->request(), obstacle);
  tunnel_ = why;
  if (connect == nullptr) return false;
  write_tunnel_response(out().text(), exchange_->request().version, context_.pseudonym);
  drop_exchange();
  if (!flush() || !write_queue_.empty()) {  // the socket does not accept even these bytes
    lost();
    return true;
  }
  leave_socket();
  clients_.intercept(listener_, std::move(connect), transport_->release_socket(), std::string(peer_.known()),
                     drain_ != Drain::none);
  return true;
}

// This client serves the CONNECT alone: a tunnel ends with the connection, and send_fault() cuts it. So no later
// request of this client lacks its response because `connect_answered_` is set.
Status H1Client::start(std::string head, metrics::Intercept why) {
  connect_answered_ = true;
  tunnel_ = why;
  preface_ = kNoPreface;
  pending_ = std::make_unique<std::string>(std::move(head));
  if (Status started = start(); !started) return started;
  run_soon();
  return Done{};
}

}  // namespace carpool::proxy
