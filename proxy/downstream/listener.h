// Listener: one listening socket. One loop accepts and dispatches each client to the loop with the fewest clients,
// because the kernel's own distribution (SO_REUSEPORT) is uneven with few connections and raises tail latency. Of equal
// loops, the accepting one is preferred: a client that comes alone then needs no message to another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "exec/coalesced_mail.h"
#include "exec/loop.h"
#include "proxy/config/config.h"
#include "proxy/downstream/listener_credentials.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/net/acceptor.h"

namespace carpool::pool {
class Directory;
}

namespace carpool::proxy {

class ClientAcceptor;
class OverloadState;
class LoopStats;

inline constexpr int kListenBacklog = 4096;

class Listener final : private net::Acceptor::Owner {
 public:
  struct Parts {
    std::vector<ClientAcceptor*> acceptors;  // the loop of the first one accepts
    LoopStats* stats = nullptr;              // of that loop
    OverloadState* overload = nullptr;
    pool::Directory* pools = nullptr;  // pools whose idle connections are closed when descriptors run out
  };
  Listener(const config::Listen& settings, Parts parts);
  ~Listener();

  // Returns the owner, group and mode of the file of a Unix socket. Blocks.
  static net::SocketAccess access_of(const config::Listen& settings);
  Status open();                        // binds and listens; the Fault names the address and the system's reason
  void adopt_socket(net::Bound bound);  // adopts a socket that is already bound
  Status start() LOOP_ONLY { return acceptor_.start(); }  // on the first worker's loop, or before it runs
  // Accepts clients that already wait, as many as in one turn, and closes the socket. Must be called on the first
  // worker's loop.
  void accept_waiting_and_close() LOOP_ONLY;
  void close() LOOP_ONLY { acceptor_.close(); }  // closes the socket without accepting another client
  // Like close(), but the successor process keeps listening on the socket.
  void leave_to_successor() LOOP_ONLY { acceptor_.stop(); }
  Fd copy() LOOP_ONLY { return acceptor_.copy(); }  // copy of the socket, for the successor process
  void on_left(net::SocketUser who) LOOP_ONLY { acceptor_.on_left(who); }

  // The settings in force. A client keeps those it was accepted with, so no version is ever freed.
  const config::Listen& settings() const { return point_.settings(); }
  // Sets the settings for new clients; must be called by one thread at a time. Settings used before cost no further
  // memory. Returns false if the limit of versions is reached.
  bool change(const config::Listen& settings);
  // The TLS identity shown to new clients; nullptr: plain text. Any thread.
  ListenerIdentity identity() const;
  void set_identity(ListenerIdentity identity);
  // Replaces the credentials that requests need; nullptr for none. Must be called before the first client, or on the
  // first worker's loop. Returns the previous ones in `credentials`; the caller keeps them until each loop has ended
  // its turn.
  void swap_credentials(ListenerCredentials& credentials);
  const ListenerCredentials& credentials() const { return credentials_; }
  // With the port that the system assigned, after open().
  const net::Address& address() const { return point_.address(); }
  const ListenPoint& point() const { return point_; }
  std::uint32_t clients() const { return clients_.load(std::memory_order_relaxed); }
  void on_client_closed();  // call when a client of this listener closed; any loop

 private:
  net::Acceptor::Gate gate() override LOOP_ONLY;
  void on_client(net::Acceptor& acceptor, Fd client, const net::Address& peer) override LOOP_ONLY;
  void on_accept_failed(int error) override LOOP_ONLY;
  void resume_accept();
  exec::Loop& loop() const;
  ClientAcceptor& least_busy() const;

  std::vector<std::unique_ptr<const config::Listen>> versions_;
  ListenerCredentials credentials_;
  ListenPoint point_;
  const Parts parts_;
  mutable Mutex identity_mutex_;
  ListenerIdentity identity_ GUARDED_BY(identity_mutex_);
  std::atomic<std::uint32_t> clients_{0};
  std::atomic<bool> full_{false};  // accepting is paused until on_client_closed()
  exec::CoalescedMail resume_;     // a client closed, accept again
  net::Acceptor acceptor_;
};

}  // namespace carpool::proxy
