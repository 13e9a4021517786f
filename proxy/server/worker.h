// Worker: one loop and everything that runs on it: its clients, exchanges, dials, router and resolver. Builds, runs and
// destroys them; owned by the Server. Members without a comment belong to the loop (LOOP_ONLY).
#pragma once

#include <memory>
#include <vector>

#include "exec/uv/driver.h"
#include "exec/uv/loop.h"
#include "proxy/downstream/client_list.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/exchange/leak_detector.h"
#include "proxy/exchange/router.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/socket_processes.h"
#include "proxy/server/delivery_inbox.h"
#include "proxy/server/workers.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/dns_stats.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/health/address_monitor.h"
#include "proxy/upstream/health/health_check.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

class Executors;
class SpanBuffer;

// WorkerParts: the parts shared by all workers of a process.
struct WorkerParts {
  const config::Config& config;  // the configuration at the start
  Executors& executors;
  OriginRegistry& origins;
  net::EgressPolicy& policy;
  metrics::Registry& metrics;
  const OverloadState& overload;
  LeakLog& leaks;
  Intercepts& intercepts;
  WarmUpListener& warm_up;
  ClientList::Owner& owner;  // notified when the last client has closed
  std::string_view pseudonym;
  net::SocketProcesses& processes;                 // of clients on loopback
  const std::vector<H2LoopContext*>& h2_contexts;  // of all workers; complete before one runs
};

class Worker final : private exec::SharedWatcher, private exec::TurnHost {
 public:
  static Result<std::unique_ptr<Worker>> make(const WorkerParts& parts, LoopId id);
  ~Worker();

  // Returns the worker whose loop the calling thread runs; the pool uses it to find its loop. Follows the loop across
  // threads.
  static Worker& current();

  template <class Work>
  void run_on_this_thread(Work work) {  // the calling thread acts as this worker's loop, which must not be running
    enter();
    work();
    leave();
  }
  bool start();                     // runs on threads of the Executors until stop(); returns false if none is left
  void stop() { driver_->stop(); }  // any thread, once
  void wait_until_stopped() const { driver_->wait_until_stopped(); }
  // Must be called after the loop stopped: closes clients, gives leases back, delivers posted messages.
  void tear_down();

  // Must be called when a new configuration is in force. Discards cached routes, and drains the clients of listeners
  // that closed.
  void on_reload(const config::Dns& dns, const config::Otlp& otlp,
                 const std::vector<const Listener*>& closed) LOOP_ONLY;
  void on_token_changed() LOOP_ONLY { exchanges_.on_token_changed(); }
  // Closes connections made with replaced certificates of these identities: idle ones now, the others after their
  // requests.
  void retire_outdated_of(const std::vector<const TlsIdentity*>& renewed) LOOP_ONLY;
  // Drops references to pools that will be destroyed, sorted by address. Returns those that an exchange still uses.
  std::vector<pool::Destination*> forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

  // Parts: the parts that belong to the loop.
  struct Parts {
    exec::UvLoop& loop;
    ClientList& clients;
    const ExchangePool& exchanges;
    const ExchangeContext& exchange_context;
    Dialer& dialer;
    LoopStats& stats;
    H2LoopContext& sessions;
    DeliveryInbox& inbox;
    SpanBuffer& spans;
  };
  const Parts parts;

 private:
  Worker(const WorkerParts& parts, std::unique_ptr<exec::UvLoop> loop, std::unique_ptr<SpanBuffer> spans);
  ExchangeContext exchange_context(const WorkerParts& all) LOOP_ONLY;
  void on_shared_ready(std::uint32_t index, std::uint32_t generation, exec::Ready ready) override LOOP_ONLY;
  void enter() override LOOP_ENTER;
  void leave() override;

  std::unique_ptr<exec::UvLoop> loop_;
  std::unique_ptr<exec::Driver> driver_;  // destroyed first, because its tasks may refer to the members below
  OriginRegistry& origins_;
  LoopStats stats_ LOOP_LOCAL;
  DeliveryInbox inbox_;
  const std::unique_ptr<SpanBuffer> spans_;
  DnsStats dns_stats_ LOOP_LOCAL;
  dns::Resolver resolver_;
  Router router_ LOOP_LOCAL;
  CrossLoopStreams streams_ LOOP_LOCAL;
  const UpstreamContext upstream_;
  Dialer dialer_ LOOP_LOCAL;
  HealthCheck health_check_ LOOP_LOCAL;
  AddressMonitor address_monitor_ LOOP_LOCAL;
  ExchangePool exchanges_ LOOP_LOCAL;
  ExchangeContext context_;
  LeakDetector leak_detector_ LOOP_LOCAL;
  ClientList clients_ LOOP_LOCAL;
};

inline exec::Loop& loop_of(const Worker& worker) {
  return worker.parts.loop;
}

}  // namespace carpool::proxy
