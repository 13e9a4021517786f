// AdminOpening: a connection to the admin endpoint until its protocol is known. In plain text the protocol is HTTP/2 if
// the client begins with its preface (RFC 9113 §3.3), otherwise HTTP/1.1, and the bytes stay in the socket for the next
// reader. With TLS the handshake selects it (ALPN), without ALPN it is HTTP/1.1.
#pragma once

#include <memory>

#include "exec/loop.h"
#include "exec/timer.h"
#include "metrics/events.h"
#include "proxy/net/tls/tls_transport.h"
#include "proxy/net/transport.h"
#include "proxy/server/admin/admin_connection.h"

namespace carpool::proxy {

class AdminOpening final : public AdminConnection, private exec::Watcher {
 public:
  class Owner {
   public:
    // `opening` is destroyed later. `deadline`: time by which the first request must arrive.
    virtual void opened(AdminOpening& opening, AdminConnection::Protocol protocol,
                        std::unique_ptr<net::Transport> transport, Instant deadline) LOOP_ONLY = 0;
    virtual void ended(AdminConnection& connection) LOOP_ONLY = 0;
    virtual void count_handshake(metrics::ClientHandshake result) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };
  AdminOpening(exec::Loop& loop, Owner& owner, std::unique_ptr<net::Transport> transport);
  AdminOpening(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> transport);
  Status start() LOOP_ONLY;
  void poll_awaited() override {}
  void end() override LOOP_ONLY;
  void end_soon() override {}  // it may have sent its request

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_deadline();
  void step_handshake(exec::Ready ready) LOOP_ONLY;
  void pass_on(Protocol protocol) LOOP_ONLY;
  bool stop_watching() LOOP_ONLY;

  exec::Loop& loop_;
  Owner& owner_;
  std::unique_ptr<net::Transport> transport_;
  tls::TlsTransport* handshake_ = nullptr;  // null: plain text
  exec::WatchKey key_;
  exec::Timer timer_;
  Instant deadline_;
  bool over_ = false;
};

}  // namespace carpool::proxy
