// HandoverListener: passes the listening sockets to a successor, on the admin loop. The successor receives them with
// the HandoverState; while it starts, both processes serve. When it sends "go", this process closes its listeners,
// sends "gone" and drains gracefully. If it disconnects before that, this process continues unaffected. One successor
// at a time, which must run as the same user or as root; one that sends nothing for a minute makes place for the next.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "exec/loop.h"
#include "proxy/net/acceptor.h"
#include "proxy/server/handover/handover_message.h"

namespace carpool::proxy {

class AdminServer;
class ConfigInForce;
class Drain;
class ListenerSet;
class OriginRegistry;
struct FdMessage;

class HandoverListener final : private net::Acceptor::Owner {
 public:
  struct Parts {
    AdminServer& admin;  // this object runs on its loop
    const ConfigInForce& config;
    OriginRegistry& origins;
    exec::Loop& first_loop;  // the loop of the listeners and the drain
    ListenerSet& listeners;
    Drain& drain;
    Duration takeover_timeout = std::chrono::minutes(1);  // then another process may take the place of a successor
  };
  explicit HandoverListener(const Parts& parts);
  ~HandoverListener();  // removes the socket file, unless a successor has the socket

  // `inherited`: a socket that is bound already. The Fault names the address and the system's reason.
  Status open(const std::string& address, std::optional<net::Bound> inherited) LOOP_ONLY;
  void on_left(net::SocketUser who) LOOP_ONLY { acceptor_.on_left(who); }
  // The own hand-over is complete. A process with an inherited socket accepts no successor before: its predecessor
  // would then wait for a process that has left, and continue.
  void on_taken_over() LOOP_ONLY { taking_over_ = false; }

 private:
  // Successor: the new process while it is connected to the hand-over socket.
  struct Successor final : exec::Watcher {
    explicit Successor(HandoverListener& l) : listener(l) {}
    void on_ready(exec::Ready) override LOOP_ONLY { listener.on_message(); }
    HandoverListener& listener;
    Fd socket;
    exec::WatchKey key;
    HandoverMessage word{HandoverMessage::kGo};
    int pid = 0;
    Instant since{};  // it was given the sockets
  };
  void on_client(net::Acceptor& acceptor, Fd socket, const net::Address& peer) override LOOP_ONLY;
  bool may_inherit(int socket) LOOP_ONLY;
  void give(Fd socket) LOOP_ONLY;
  Result<FdMessage> build_message() LOOP_ONLY;
  void drop_late_successor() LOOP_ONLY;
  void on_message() LOOP_ONLY;
  void leave() LOOP_ONLY;
  void drop_successor() LOOP_ONLY;
  void keep_sockets() LOOP_ONLY;

  const Parts parts_;
  std::string configured_;
  net::Acceptor acceptor_;
  Successor successor_{*this};
  bool taking_over_ LOOP_LOCAL = false;
};

}  // namespace carpool::proxy
