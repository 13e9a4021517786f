// House: builds the parts in order, owns them, and takes them down in order. One per process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metrics/registry.h"
#include "proxy/admin_server.h"
#include "proxy/config/config.h"
#include "proxy/downstream/listener.h"
#include "proxy/drain.h"
#include "proxy/execution.h"
#include "proxy/log_sync.h"
#include "proxy/net/policy.h"
#include "proxy/origins.h"
#include "proxy/upstream/pool_house.h"
#include "proxy/worker.h"

namespace carpool::proxy {

class House {
 public:
  // Everything up to listening; nothing runs yet. Faults of opening sockets have kind `unroutable`: exit 2.
  static Result<std::unique_ptr<House>> build(const config::Config& config);
  ~House();

  // Until it is drained or told to leave; the calling thread waits. False: a task did not end within a second after
  // its loop, and works on things of this house, which must not be destroyed then. A Fault: no thread for a loop.
  Result<bool> run();

  const config::Config& config() const { return config_; }
  Origins& origins() { return *origins_; }
  const net::RulePolicy& policy() const { return *policy_; }
  metrics::Registry& metrics() { return *metrics_; }
  std::string_view pseudonym() const { return pseudonym_; }
  Drain& drain() { return *drain_; }
  Execution& execution() { return *execution_; }
  std::vector<std::unique_ptr<Worker>>& workers() { return workers_; }
  std::vector<std::unique_ptr<Listener>>& listeners() { return listeners_; }
  const AdminServer& admin() const { return *admin_; }
  void reopen_logs();            // any thread: on the admin thread, for a file system may be slow
  void begin_drain() LOOP_ONLY;  // on the first worker's loop; tells the supervisor
  void on_worker_empty();        // any loop: a draining worker lost its last client

 private:
  explicit House(const config::Config& config);
  Status open();
  Status open_listeners();
  Status open_admin();
  Result<bool> turn_loops();
  void sweep();

  const config::Config& config_;
  const std::string pseudonym_;
  PoolHouse pool_house_;
  std::unique_ptr<metrics::Registry> metrics_;
  std::unique_ptr<net::RulePolicy> policy_;
  std::unique_ptr<Origins> origins_;
  std::unique_ptr<Execution> execution_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<AdminServer> admin_;
  std::unique_ptr<Drain> drain_;
  std::unique_ptr<exec::Timer> sweeper_;
  std::unique_ptr<LogSync> log_sync_;  // absent: nobody asked for it
};

}  // namespace carpool::proxy
