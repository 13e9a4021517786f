// Worker: one loop and everything that lives on it: its clients, its exchanges, its dials, its router and resolver.
// Builds them, runs them and takes them down; owned by the House. What it says nothing else of is the loop's own
// (LOOP_ONLY).
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
#include "proxy/server/delivery_inbox.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/dialer.h"
#include "proxy/upstream/dns_stats.h"
#include "proxy/upstream/h2/cross_loop_streams.h"
#include "proxy/upstream/health/address_monitor.h"
#include "proxy/upstream/health/health_check.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

class Executors;

// What every worker of a process is built on.
struct WorkerParts {
  const config::Config& config;  // of the start
  Executors& executors;
  OriginRegistry& origins;
  net::EgressPolicy& policy;
  metrics::Registry& metrics;
  const OverloadState& overload;
  LeakLog& leaks;
  WarmUpListener& warm_up;
  ClientList::Owner& owner;  // hears that the last client left
  std::string_view pseudonym;
  const std::vector<H2LoopContext*>& session_hosts;  // of all workers; complete before one runs
};

class Worker final : private exec::SharedWatcher, private exec::TurnHost {
 public:
  static Result<std::unique_ptr<Worker>> make(const WorkerParts& parts, exec::LoopId id);
  ~Worker();

  // The worker whose loop this thread turns; for the pool, which asks where it is. Follows the loop from thread to
  // thread.
  static Worker& current();

  template <class Work>
  void run_on_this_thread(Work work) {  // the calling thread stands in for this worker's loop, which no thread turns
    enter();
    work();
    leave();
  }
  bool start();                     // on threads of the execution, until stop(). False: none is left
  void stop() { driver_->stop(); }  // any thread, once
  void wait_until_stopped() const { driver_->wait_until_stopped(); }
  void tear_down();  // after it stopped: closes clients, gives leases back, delivers what was posted

  // Another configuration is in force: forgets the routes it knows, and drains the clients of listeners that closed.
  void on_reload(const config::Dns& dns, const std::vector<const Listener*>& closed) LOOP_ONLY;
  // Closes connections that were made under certificates of these identities that were replaced: idle ones now, the
  // others with their requests.
  void retire_outdated_of(const std::vector<const TlsIdentity*>& renewed) LOOP_ONLY;
  // Forgets pools that are about to be destroyed. Returns true if an exchange still uses one of them.
  bool forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

  // Its parts.
  struct Parts {
    exec::UvLoop& loop;
    ClientList& clients;
    const ExchangePool& exchanges;
    Dialer& dialer;
    LoopStats& stats;
    H2LoopContext& sessions;
    DeliveryInbox& inbox;
  };
  const Parts parts;

 private:
  Worker(const WorkerParts& parts, std::unique_ptr<exec::UvLoop> loop);
  void on_shared_ready(std::uint32_t index, std::uint32_t generation, exec::Ready ready) override LOOP_ONLY;
  void enter() override LOOP_ENTER;
  void leave() override;

  std::unique_ptr<exec::UvLoop> loop_;
  std::unique_ptr<exec::Driver> driver_;  // destroyed first: the tasks that it holds may refer to what is below
  OriginRegistry& origins_;
  LoopStats recorder_ LOOP_LOCAL;
  DeliveryInbox inbox_;
  DnsStats dns_stats_ LOOP_LOCAL;
  dns::Resolver resolver_;
  Router router_ LOOP_LOCAL;
  CrossLoopStreams streams_ LOOP_LOCAL;
  const UpstreamContext upstream_;
  Dialer dialer_ LOOP_LOCAL;
  HealthCheck health_check_ LOOP_LOCAL;
  AddressMonitor address_watch_ LOOP_LOCAL;
  ExchangePool exchanges_ LOOP_LOCAL;
  ExchangeContext context_;
  LeakDetector leak_watch_ LOOP_LOCAL;
  ClientList clients_ LOOP_LOCAL;
};

using Workers = std::vector<std::unique_ptr<Worker>>;

}  // namespace carpool::proxy
