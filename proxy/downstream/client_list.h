// ClientList: owns the clients of one loop, from accept to the end of the turn in which they close.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/intrusive.h"
#include "proxy/downstream/announced_client.h"
#include "proxy/downstream/client_acceptor.h"
#include "proxy/downstream/client_connection.h"
#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/handshake_owner.h"
#include "proxy/downstream/handshake_turns.h"
#include "proxy/downstream/request_pacer.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/net/handshake_budget.h"

namespace carpool::proxy {

class ClientList final : public ClientAcceptor,
                         public ClientOwner,
                         public HandshakeOwner,
                         public AnnouncedClient::Owner,
                         private exec::Deferred {
 public:
  class Owner {
   public:
    // Called on the list's loop when the last client of a draining list has closed. A client that was accepted before
    // may still arrive.
    virtual void on_clients_gone() = 0;

   protected:
    ~Owner() = default;
  };

  // Handshakes: up to `inline_per_second` TLS handshakes of clients run on the loop, further ones as `tasks`.
  struct Handshakes {
    exec::Submitter* tasks = nullptr;  // nullptr: all run on the loop
    std::uint32_t inline_per_second = 0;
    std::uint32_t max_tasks = 1;  // at a time
  };
  // `intercepts`: nullptr if no origin is intercepted.
  ClientList(ExchangeContext& context, Owner& owner, Handshakes handshakes = {nullptr, 0, 1},
             Intercepts* intercepts = nullptr)
      : context_(context),
        owner_(owner),
        handshakes_(handshakes),
        interceptor_(context, intercepts),
        pacer_(context.loop),
        handshake_turns_(handshakes.max_tasks) {}
  ~ClientList();

  exec::Loop& loop() override { return context_.loop; }
  void accept(Listener& listener, Fd socket, std::string peer) override LOOP_ONLY;

  // Closes idle clients at once, the others after their next response. A client that has not sent a request yet, or
  // that arrives now because it was accepted before, has a short time for one.
  void drain() LOOP_ONLY;
  // Like drain(), but an idle client may send one more request.
  void start_graceful_close() LOOP_ONLY;
  // Drains only the clients of these listeners; new clients are still accepted.
  void drain_those_of(const std::vector<const Listener*>& closed) LOOP_ONLY;
  // Drains the clients whose interception a reload has ended or whose authority it has replaced.
  void drain_replaced_interceptions() LOOP_ONLY;
  void shed_idle() LOOP_ONLY;  // closes idle clients
  void close_all() LOOP_ONLY;  // closes even in the middle of a response
  // Returns true if the list is draining and has no client. Any thread.
  bool empty() const { return empty_.load(std::memory_order_acquire); }

 private:
  void destroy_later(ClientConnection& client) override LOOP_ONLY;
  void upgrade_to_h2(Listener& listener, std::unique_ptr<const ListenPoint> point,
                     std::unique_ptr<net::Transport> transport, std::string peer, std::string_view bytes,
                     bool drains) override LOOP_ONLY;
  void intercept(Listener& listener, std::unique_ptr<InterceptedConnect> connect, Fd socket, std::string peer,
                 bool drains) override LOOP_ONLY;
  void established(Listener& listener, std::unique_ptr<const ListenPoint> point,
                   std::unique_ptr<net::Transport> transport, std::string peer, bool drains) override LOOP_ONLY;
  void announced(Listener& listener, Fd socket, std::string peer, bool drains) override LOOP_ONLY;
  void tunnel(Listener& listener, InterceptedConnect& connect, metrics::Intercept why, Fd socket, std::string peer,
              bool drains) override LOOP_ONLY;
  // Adds a client that takes over the connection of a client of this list, and starts it with these arguments. Closes
  // the connection and returns nullptr if that fails.
  template <class Client, class... Arguments>
  ClientConnection* add_successor(std::unique_ptr<Client> client, Arguments... arguments) LOOP_ONLY;
  template <class Client>
  std::unique_ptr<Client> make_successor(Listener& listener, std::unique_ptr<const ListenPoint> point,
                                         std::unique_ptr<net::Transport> transport, std::string peer) LOOP_ONLY;
  void leave_soon(ClientConnection& client) LOOP_ONLY;
  void begin_to_leave(ClientConnection* client, bool drains) LOOP_ONLY;
  std::unique_ptr<ClientConnection> begin(Listener& listener, Fd socket, std::string peer) LOOP_ONLY;
  exec::Submitter* tasks_for_handshake() override LOOP_ONLY;
  HandshakeTurns& handshake_turns() override LOOP_ONLY { return handshake_turns_; }
  RequestPacer& pacer() override LOOP_ONLY { return pacer_; }
  ConnectInterceptor& interceptor() override LOOP_ONLY { return interceptor_; }
  void run() override LOOP_ONLY;  // exec::Deferred: destroys the clients that closed in this turn
  void note_if_empty() LOOP_ONLY;
  void leave(Listener& listener) LOOP_ONLY;  // a client of the listener has closed or was refused
  // Calls `visit` for each client, which it may close.
  template <class Visit>
  void for_each(Visit visit) LOOP_ONLY;

  ExchangeContext& context_;
  Owner& owner_;
  const Handshakes handshakes_;
  ConnectInterceptor interceptor_ LOOP_LOCAL;
  RequestPacer pacer_;
  List<ClientConnection, ClientTag> clients_ LOOP_LOCAL;  // owned
  List<ClientConnection, ClientTag> closed_ LOOP_LOCAL;   // owned
  std::size_t count_ LOOP_LOCAL = 0;
  bool ending_ LOOP_LOCAL = false;  // drain() was called
  bool over_ LOOP_LOCAL = false;    // close_all() was called
  net::HandshakeBudget handshake_budget_ LOOP_LOCAL;
  HandshakeTurns handshake_turns_ LOOP_LOCAL;
  std::atomic<bool> empty_{false};  // release in note_if_empty(), relaxed in accept(), acquire in empty()
};

}  // namespace carpool::proxy
