// HandoverListener: where a successor asks for the sockets, on the admin loop. It is given them with the manifest, and
// while it starts both serve. When it says "go" this process closes its doors, says "gone", and drains without hurry.
// If it leaves without a word, everything stays as it was. One successor at a time; the same user, or root.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "exec/loop.h"
#include "proxy/net/bind.h"
#include "proxy/server/handover/handover_word.h"

namespace carpool::proxy {

class AdminServer;
class ConfigInForce;
class Drain;
class ListenerSet;
class OriginRegistry;
struct FdMessage;

class HandoverListener final : private exec::Watcher {
 public:
  struct Parts {
    AdminServer& admin;  // on its loop this lives
    const ConfigInForce& config;
    OriginRegistry& origins;
    exec::Loop& first_loop;  // the listeners and the drain are its own
    ListenerSet& listeners;
    Drain& drain;
  };
  explicit HandoverListener(const Parts& parts);
  ~HandoverListener();  // the socket file goes with it, unless a successor has the socket

  // `inherited`: bound already. The Fault names the address and the system's reason.
  Status open(const std::string& address, std::optional<net::Bound> inherited);

 private:
  // The successor, from its connection to its last word.
  struct Successor final : exec::Watcher {
    explicit Successor(HandoverListener& d) : door(d) {}
    void on_ready(exec::Ready) override LOOP_ONLY { door.on_message(); }
    HandoverListener& door;
    Fd socket;
    exec::WatchKey key;
    HandoverWord word{HandoverWord::kGo};
    int pid = 0;
  };
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  bool may_inherit(int socket);
  void give(Fd socket) LOOP_ONLY;
  Result<FdMessage> build_message() LOOP_ONLY;
  void on_message() LOOP_ONLY;
  void leave() LOOP_ONLY;
  void forget_heir() LOOP_ONLY;

  const Parts parts_;
  std::string configured_;
  Fd fd_;
  exec::WatchKey key_;
  net::Address address_;
  Successor heir_{*this};
};

}  // namespace carpool::proxy
