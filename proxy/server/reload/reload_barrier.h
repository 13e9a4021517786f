// ReloadBarrier: tells every loop that another configuration is in force and waits until each has looked up, so that
// nobody still reads the old one when it goes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/role.h"
#include "proxy/config/config.h"
#include "proxy/server/drain.h"
#include "proxy/server/reload/listener_changes.h"
#include "proxy/server/worker.h"

namespace carpool::proxy {

class ListenerSet;
class OriginRegistry;
class TlsIdentity;

class ReloadBarrier : public std::enable_shared_from_this<ReloadBarrier> {
 public:
  struct Parts {
    const Workers& workers;
    ListenerSet& listeners;
    OriginRegistry& origins;
    const Drain& drain;
  };
  explicit ReloadBarrier(const Parts& parts) : parts_(parts) {}

  ListenerChanges listeners;
  config::Dns dns;
  std::vector<const TlsIdentity*> renewed;  // with other certificates: what was made under the old ones ends

  // In a blocking task. False: a loop has not answered within `timeout`; it will.
  bool run(Duration timeout);

 private:
  void begin() LOOP_ONLY;
  void visit(Worker& worker, const std::vector<const Listener*>& closed) LOOP_ONLY;
  void arrived();
  const Parts parts_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::size_t missing_ = 0;  // guarded by mutex_
};

}  // namespace carpool::proxy
