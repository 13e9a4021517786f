// Server: builds the parts in order, owns them and destroys them in order. One per process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "exec/bound.h"
#include "metrics/registry.h"
#include "proxy/config/in_force.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/net/egress_policy.h"
#include "proxy/net/socket_processes.h"
#include "proxy/server/admin/admin_server.h"
#include "proxy/server/admin_control.h"
#include "proxy/server/admin_view.h"
#include "proxy/server/credential_files.h"
#include "proxy/server/drain.h"
#include "proxy/server/executors.h"
#include "proxy/server/handover/handover_client.h"
#include "proxy/server/handover/handover_listener.h"
#include "proxy/server/idle_pool_reaper.h"
#include "proxy/server/intercept_leaves.h"
#include "proxy/server/listener_set.h"
#include "proxy/server/log_sync.h"
#include "proxy/server/oauth2/token_keepers.h"
#include "proxy/server/overload/heap_trim.h"
#include "proxy/server/overload/overload_monitor.h"
#include "proxy/server/pool_environment.h"
#include "proxy/server/reload/certificate_ends.h"
#include "proxy/server/reload/file_monitor.h"
#include "proxy/server/reload/reloader.h"
#include "proxy/server/stats_summary.h"
#include "proxy/server/worker.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/warm_up.h"

namespace carpool::proxy {

class OtlpExporter;
class UntrackedWatch;

class Server final : private WarmUpListener, private ClientList::Owner, private Drain::Host, private WarmUp::Host {
 public:
  // Builds everything up to listening; nothing runs yet. Faults of opening sockets have the kind `unroutable` (exit
  // code 2). `source`: the origin of the configuration, for a reload; empty if it cannot be read again.
  static Result<std::unique_ptr<Server>> build(const config::Config& config, std::optional<config::Options> source);
  ~Server();

  // Sets a function that is called on the first worker's loop once every loop has a thread and the connections
  // configured for the start are open or have failed. Must be called before run().
  void when_ready(void (*ready)(Server&)) { ready_ = ready; }
  struct End {
    Status status = Done{};  // a Fault: a loop has no thread
    // False if a task did not end within a second after its loop. It still uses parts of this server, which must then
    // not be destroyed.
    bool tasks_ended = true;
  };
  // Runs until drained or stopped; the calling thread waits.
  End run();

  exec::Loop& first_loop() { return workers_.front()->parts.loop; }
  const std::vector<std::unique_ptr<Listener>>& listeners() const { return listeners_.open_ones(); }
  const AdminServer& admin() const { return *admin_; }
  OriginRegistry& origins() { return *origins_; }

  std::uint64_t memory_limit() const { return overload_.memory().limit; }  // in bytes; 0 if none
  void reload() { reloader_->ask(); }                                      // any thread
  void reopen_logs();                         // any thread; runs on the admin thread, because a file system may be slow
  void stop() LOOP_ONLY { drain_->begin(); }  // on the first worker's loop; the second call ends everything now

 private:
  explicit Server(const config::Config& config);
  Status open();
  Status make_workers();
  Listener::Parts listener_parts();
  Status open_listeners();
  Status open_admin();
  Status open_handover();
  void make_reloader(std::optional<config::Options> source, std::vector<FileSnapshot> before);
  std::optional<net::Bound> inherited(std::string_view role, const std::string& address);
  void report_ready() { ready_(*this); }
  void watch_files();  // watches the files of the configuration in force; on the admin thread
  void try_files_again();
  Status start_loops();
  End wait_for_end(Status started);
  void watch_predecessor() LOOP_ONLY;
  void become_ready() LOOP_ONLY;
  void on_predecessor_left();
  void on_handed_over();
  void on_late();
  void sweep();
  void end_background_work() LOOP_ONLY;

  std::uint64_t on_warm_dial_begun() override LOOP_ONLY;
  void on_warm_dial_ended(std::uint64_t attempt, const Fault* fault) override LOOP_ONLY;
  void on_warm() override LOOP_ONLY;
  void on_clients_gone() override;  // any loop: the last client of a draining worker closed
  // ---- Drain::Host ----
  Duration drain_delay() const override { return config_.get().drain_delay; }
  Duration shutdown_grace() const override { return config_.get().shutdown_grace; }
  void on_stopping() override LOOP_ONLY;
  void close_listeners() override LOOP_ONLY { listeners_.close_all(); }
  void leave_listeners() override LOOP_ONLY { listeners_.leave_all(); }
  void drain_clients() override LOOP_ONLY;
  void start_graceful_close() override LOOP_ONLY;
  bool clients_gone() const override LOOP_ONLY;
  bool begin_last_export() override LOOP_ONLY;
  void stop_loops() override LOOP_ONLY;
  void on_last_export();

  ConfigInForce config_;
  const std::string pseudonym_;
  LeakLog leaks_;
  Intercepts intercepts_;
  InterceptLeaves intercept_leaves_{intercepts_};
  net::SocketProcesses processes_;
  std::vector<H2LoopContext*> h2_contexts_;  // of the workers
  Workers workers_;
  WorkerPoolEnvironment pool_environment_{workers_, leaks_};
  std::unique_ptr<metrics::Registry> metrics_;
  std::unique_ptr<net::EgressPolicy> policy_;
  std::unique_ptr<OriginRegistry> origins_;
  std::unique_ptr<CredentialFiles> credential_files_;
  std::unique_ptr<Executors> executors_;
  ListenerSet listeners_;
  OverloadState overload_;
  CertificateEnds certificates_;
  std::unique_ptr<Drain> drain_;
  std::unique_ptr<WarmUp> warm_up_;
  std::unique_ptr<ServerAdminView> view_;
  std::unique_ptr<ServerAdminControl> control_;
  std::unique_ptr<AdminServer> admin_;
  std::unique_ptr<TokenKeepers> tokens_;
  std::unique_ptr<OtlpExporter> otlp_;
  std::unique_ptr<OverloadMonitor> overload_monitor_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<FileMonitor> files_;
  std::unique_ptr<exec::Timer> sweeper_;
  std::unique_ptr<IdlePoolReaper> idle_pool_reaper_;
  std::unique_ptr<LogSync> log_sync_;  // null: not configured
  std::unique_ptr<HeapTrim> heap_trim_;
  std::unique_ptr<UntrackedWatch> untracked_;
  std::unique_ptr<StatsSummaryLog> summary_;
  std::unique_ptr<HandoverClient> handover_client_;  // null: no process was replaced
  std::unique_ptr<HandoverListener> handover_;       // null: not configured
  void (*ready_)(Server&) = [](Server&) {};
  bool loops_started_ LOOP_LOCAL = false, warm_ LOOP_LOCAL = false;  // of the first worker's loop: both precede ready_
};

}  // namespace carpool::proxy
