// ReloadRound: tells every loop that another configuration is in force and waits until each has looked up, so that
// nobody still reads the old one when it goes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/role.h"
#include "proxy/config/config.h"
#include "proxy/net/bind.h"

namespace carpool::proxy {

class House;
class Listener;
class TlsIdentity;
class Worker;

// Listeners that come, change and go.
struct ListenerChange {
  config::Listen settings;
  net::Bound bound;
};

class ReloadRound : public std::enable_shared_from_this<ReloadRound> {
 public:
  explicit ReloadRound(House& house) : house_(house) {}

  std::vector<ListenerChange> opening;   // bound already
  std::vector<std::string> closing;      // by configured address
  std::vector<config::Listen> changing;  // others that stay
  config::Dns dns;
  std::vector<const TlsIdentity*> renewed;  // with other certificates: what was made under the old ones ends

  // In a blocking task. False: a loop has not answered within `patience`; it will.
  bool run(Duration patience);

 private:
  void begin() LOOP_ONLY;
  void visit(Worker& worker, const std::vector<const Listener*>& closed) LOOP_ONLY;
  void arrived();
  House& house_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::size_t missing_ = 0;  // guarded by mutex_
};

}  // namespace carpool::proxy
