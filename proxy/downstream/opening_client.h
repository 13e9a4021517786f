// OpeningClient: a client's connection until it can send a request: a PROXY header or a TLS handshake comes first, and
// must be complete before a deadline.
#pragma once

#include "exec/loop.h"
#include "proxy/downstream/client_connection.h"

namespace carpool::proxy {

struct ExchangeContext;

class OpeningClient : public ClientConnection {
 public:
  void drain() final LOOP_ONLY;                   // kOpeningTime is left at most
  void start_graceful_close() final LOOP_ONLY {}  // the client that takes the connection over closes gracefully
  bool end_if_idle() final LOOP_ONLY;

 protected:
  OpeningClient(const ExchangeContext& context, Listener& listener);
  virtual void on_deadline() = 0;

  const ExchangeContext& context_;
  Listener& listener_;
  exec::Timer deadline_;
  bool over_ = false;
  bool draining_ = false;  // drain() was called
};

}  // namespace carpool::proxy
