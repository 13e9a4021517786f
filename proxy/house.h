// House: builds the parts in order, owns them, and takes them down in order. One per process.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metrics/registry.h"
#include "proxy/admin_server.h"
#include "proxy/config/config.h"
#include "proxy/downstream/listener.h"
#include "proxy/drain.h"
#include "proxy/egress_witness.h"
#include "proxy/execution.h"
#include "proxy/handover/door.h"
#include "proxy/handover/inheritance.h"
#include "proxy/leak_book.h"
#include "proxy/log_sync.h"
#include "proxy/net/policy.h"
#include "proxy/origins.h"
#include "proxy/overload/heap_trim.h"
#include "proxy/overload/overload.h"
#include "proxy/overload/watch.h"
#include "proxy/reclaimer.h"
#include "proxy/reload/file_watch.h"
#include "proxy/reload/reloader.h"
#include "proxy/reload/round.h"
#include "proxy/summary.h"
#include "proxy/upstream/pool_house.h"
#include "proxy/warm_up.h"
#include "proxy/worker.h"

namespace carpool::proxy {

class House : private WarmUpListener, private ClientList::Owner {
 public:
  // Everything up to listening; nothing runs yet. Faults of opening sockets have kind `unroutable`: exit 2.
  // `source`: where the configuration came from, for a reload; nothing: it cannot be read again.
  static Result<std::unique_ptr<House>> build(const config::Config& config, std::optional<config::Options> source);
  ~House();

  // Until it is drained or told to leave; the calling thread waits. False: a task did not end within a second after
  // its loop, and works on things of this house, which must not be destroyed then. A Fault: no thread for a loop.
  // `ready` is called on the first worker's loop once connections that the configuration wants at start are open, or
  // given up.
  void when_ready(void (*ready)(House&)) { ready_ = ready; }
  Result<bool> run();

  // The one in force. On a worker's loop good for its turn, on the admin loop until the next reload.
  const config::Config& config() const { return *in_force_.load(std::memory_order_acquire); }
  // On the admin loop. The old one: a worker may look into it until its turn ends.
  std::unique_ptr<const config::Config> put_in_force(std::unique_ptr<config::Config> fresh);
  // For everybody else: work on it while it cannot go.
  template <class Work>
  auto with_config(Work work) const {
    const std::scoped_lock lock(config_mutex_);
    return work(*config_);
  }
  Reloader& reloader() { return *reloader_; }
  void watch_files() LOOP_ONLY;  // those that the configuration in force names; on the admin thread
  Origins& origins() { return *origins_; }
  net::RulePolicy& policy() { return *policy_; }
  metrics::Registry& metrics() { return *metrics_; }
  std::string_view pseudonym() const { return pseudonym_; }
  LeakBook& leaks() { return leaks_; }
  WarmUp& warm_up() { return *warm_up_; }
  Overload& overload() { return overload_; }
  HeapTrim::Shown heap() const { return heap_trim_ ? heap_trim_->shown() : HeapTrim::Shown{}; }  // any thread
  Drain& drain() { return *drain_; }
  Execution& execution() { return *execution_; }
  std::vector<std::unique_ptr<Worker>>& workers() { return workers_; }
  std::vector<std::unique_ptr<Listener>>& listeners() { return listeners_; }
  AdminServer& admin() { return *admin_; }
  // On the first worker's loop. Those that closed: their clients should end.
  std::vector<const Listener*> change_listeners(ReloadRound& round) LOOP_ONLY;
  bool took_over() const { return inheritance_ != nullptr; }
  void reopen_logs();            // any thread: on the admin thread, for a file system may be slow
  void begin_drain() LOOP_ONLY;  // on the first worker's loop; tells the supervisor

 private:
  explicit House(const config::Config& config);
  void on_warm_dial_ended(const pool::Destination& destination, const Fault* fault) override LOOP_ONLY;
  void on_clients_gone() override;  // any loop: a draining worker lost its last client
  Listener::Parts listener_parts();
  Status open();
  Status make_workers();
  Status open_listeners();
  Status open_admin();
  Status open_handover();
  void warmed_up() LOOP_ONLY;
  Result<bool> turn_loops();
  void sweep();

  mutable std::mutex config_mutex_;  // around its replacement, and around those who may look at any time
  std::unique_ptr<config::Config> config_;
  std::atomic<const config::Config*> in_force_;  // release in put_in_force(), acquire in config()
  const std::string pseudonym_;
  PoolHouse pool_house_;
  LeakBook leaks_;
  std::unique_ptr<metrics::Registry> metrics_;
  std::unique_ptr<EgressWitness> egress_;
  std::unique_ptr<net::RulePolicy> policy_;
  std::unique_ptr<Origins> origins_;
  std::unique_ptr<Execution> execution_;
  std::vector<SessionHost*> session_hosts_;  // of the workers
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Listener>> closed_listeners_;  // clients of theirs may live; reopened, not made again
  Overload overload_;
  std::unique_ptr<OverloadWatch> overload_watch_;
  std::unique_ptr<AdminServer> admin_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<FileWatch> files_;
  std::unique_ptr<Drain> drain_;
  std::unique_ptr<exec::Timer> sweeper_;
  Reclaimer reclaimer_{*this};
  std::unique_ptr<LogSync> log_sync_;  // absent: nobody asked for it
  std::unique_ptr<HeapTrim> heap_trim_;
  const HouseView view_{*this};
  std::unique_ptr<Summary> summary_;
  std::unique_ptr<WarmUp> warm_up_;
  std::unique_ptr<Inheritance> inheritance_;  // null: nobody was there before
  std::unique_ptr<HandoverDoor> handover_;    // null: nobody can take over
  void (*ready_)(House&) = [](House&) {};
};

}  // namespace carpool::proxy
