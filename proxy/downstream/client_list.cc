#include "proxy/downstream/client_list.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "proxy/downstream/client_handshake.h"
#include "proxy/downstream/h1_client.h"
#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/listener.h"
#include "proxy/net/plain_transport.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

ClientList::~ClientList() {
  CARPOOL_ASSERT(clients_.empty() && closed_.empty());
}

template <class Visit>
void ClientList::for_each(Visit visit) {
  for (ClientConnection& client : clients_) visit(client);
}

void ClientList::accept(Listener& listener, Fd socket, std::string peer) {
  std::unique_ptr<ClientConnection> client;
  if (!over_) client = begin(listener, std::move(socket), std::move(peer));
  if (client == nullptr) return leave(listener);
  ++count_;
  if (context_.draining) empty_.store(false, std::memory_order_relaxed);
  context_.stats.client_came();
  ClientConnection& accepted = *client.release();
  clients_.push_back(accepted);
  if (context_.draining) leave_soon(accepted);
}

// Drains a client that began after the others of a draining list were drained: it was accepted before.
void ClientList::leave_soon(ClientConnection& client) {
  ending_ ? client.drain() : client.start_graceful_close();
}

// Returns nullptr if the client is refused.
std::unique_ptr<ClientConnection> ClientList::begin(Listener& listener, Fd socket, std::string peer) {
  if (listener.settings().proxy_protocol) {
    auto client = std::make_unique<AnnouncedClient>(context_, *this, listener, std::move(socket));
    if (!client->start()) return nullptr;
    return client;
  }
  ListenerIdentity identity = listener.identity();
  if (identity == nullptr) {
    auto client = std::make_unique<H1Client>(context_, *this, listener, listener.point(),
                                             net::make_accepted(std::move(socket)), std::move(peer));
    if (!client->start()) return nullptr;
    return client;
  }
  auto client = std::make_unique<ClientHandshake>(context_, *this, listener, std::move(identity), std::move(socket),
                                                  std::move(peer));
  if (!client->start()) return nullptr;
  return client;
}

// Returns the executor of a handshake, or nullptr for the loop itself. A full handshake signs, which takes up to a
// millisecond; more of them per second would delay the other clients.
exec::Submitter* ClientList::tasks_for_handshake() {
  const bool on_the_loop = handshake_budget_.withdraw(handshakes_.inline_per_second, context_.loop.now());
  return on_the_loop ? nullptr : handshakes_.tasks;
}

template <class Client>
std::unique_ptr<Client> ClientList::make_successor(Listener& listener, std::unique_ptr<const ListenPoint> point,
                                                   std::unique_ptr<net::Transport> transport, std::string peer) {
  const ListenPoint& used = point == nullptr ? listener.point() : *point;
  auto client = std::make_unique<Client>(context_, *this, listener, used, std::move(transport), std::move(peer));
  client->keep(std::move(point));
  return client;
}

template <class Client, class... Arguments>
ClientConnection* ClientList::add_successor(std::unique_ptr<Client> client, Arguments... arguments) {
  Client& started = *client;
  clients_.push_back(*client.release());
  if (!started.start(std::move(arguments)...)) {
    started.end();
    return nullptr;
  }
  return &started;
}

void ClientList::established(Listener& listener, std::unique_ptr<const ListenPoint> point,
                             std::unique_ptr<net::Transport> transport, std::string peer, bool drains) {
  constexpr std::string_view kNone;  // nothing was read yet
  const bool h2 = transport->security().alpn == "h2";
  ClientConnection* const client =
      h2 ? add_successor(make_successor<H2Client>(listener, std::move(point), std::move(transport), std::move(peer)),
                         kNone, kNone)
         : add_successor(make_successor<H1Client>(listener, std::move(point), std::move(transport), std::move(peer)));
  begin_to_leave(client, drains);
}

// Drains a successor if the client was drained whose connection it took over (`drains`) or all are. Checks the
// interception again, because a reload may have ended it between the client's CONNECT and its handshake.
void ClientList::begin_to_leave(ClientConnection* client, bool drains) {
  if (client == nullptr) return;
  const Interception* const inside = client->interception();
  if (drains) return client->drain();
  if (context_.draining || (inside != nullptr && !interceptor_.in_force(*inside))) leave_soon(*client);
}

void ClientList::announced(Listener& listener, Fd socket, std::string peer, bool drains) {
  ListenerIdentity identity = listener.identity();
  ClientConnection* const client =
      identity == nullptr ? add_successor(make_successor<H1Client>(
                                listener, nullptr, net::make_accepted(std::move(socket)), std::move(peer)))
                          : add_successor(std::make_unique<ClientHandshake>(
                                context_, *this, listener, std::move(identity), std::move(socket), std::move(peer)));
  begin_to_leave(client, drains);
}

void ClientList::upgrade_to_h2(Listener& listener, std::unique_ptr<const ListenPoint> point,
                               std::unique_ptr<net::Transport> transport, std::string peer, std::string_view bytes,
                               bool drains) {
  ClientConnection* const client =
      add_successor(make_successor<H2Client>(listener, std::move(point), std::move(transport), std::move(peer)),
                    http::kH2Preface, bytes);
  begin_to_leave(client, drains);
}

void ClientList::intercept(Listener& listener, std::unique_ptr<InterceptedConnect> connect, Fd socket, std::string peer,
                           bool drains) {
  ClientConnection* const client = add_successor(std::make_unique<ClientHandshake>(
      context_, *this, listener, std::move(connect), std::move(socket), std::move(peer)));
  begin_to_leave(client, drains);
}

void ClientList::tunnel(Listener& listener, InterceptedConnect& connect, metrics::Intercept why, Fd socket,
                        std::string peer, bool drains) {
  auto point = std::make_unique<const ListenPoint>(listener.point(), std::move(connect.user));
  ClientConnection* const client = add_successor(
      make_successor<H1Client>(listener, std::move(point), net::make_accepted(std::move(socket)), std::move(peer)),
      std::move(connect.head), why);
  begin_to_leave(client, drains);
}

void ClientList::destroy_later(ClientConnection& client) {
  client.ListHook<ClientTag>::unlink();
  closed_.push_back(client);
  if (!exec::Deferred::linked()) context_.loop.defer(*this);
}

void ClientList::run() {
  while (!closed_.empty()) {
    const std::unique_ptr<ClientConnection> client(&closed_.pop_front());
    if (client->listener() == nullptr) continue;
    leave(*client->listener());
    --count_;
    context_.stats.client_left();
  }
  note_if_empty();
}

void ClientList::leave(Listener& listener) {
  note_client_closed();
  listener.on_client_closed();
}

void ClientList::drain() {
  context_.draining = ending_ = true;
  for_each([](ClientConnection& client) LOOP_ONLY { client.drain(); });
  note_if_empty();
}

void ClientList::start_graceful_close() {
  context_.draining = true;
  for_each([](ClientConnection& client) LOOP_ONLY { client.start_graceful_close(); });
  note_if_empty();
}

void ClientList::drain_those_of(const std::vector<const Listener*>& closed) {
  for_each([&closed](ClientConnection& client) LOOP_ONLY {
    if (std::find(closed.begin(), closed.end(), client.listener()) != closed.end()) client.drain();
  });
}

void ClientList::drain_replaced_interceptions() {
  for_each([this](ClientConnection& client) LOOP_ONLY {
    const Interception* const inside = client.interception();
    if (inside != nullptr && !interceptor_.in_force(*inside)) client.drain();
  });
}

void ClientList::shed_idle() {
  for_each([this](ClientConnection& client) LOOP_ONLY {
    if (client.end_if_idle()) context_.stats.count(metrics::Shed::idle);
  });
}

void ClientList::close_all() {
  context_.draining = over_ = true;
  while (!clients_.empty()) clients_.front().end();
  run();
}

void ClientList::note_if_empty() {
  if (context_.draining && count_ == 0 && !empty_.exchange(true, std::memory_order_acq_rel)) owner_.on_clients_gone();
}

}  // namespace carpool::proxy
