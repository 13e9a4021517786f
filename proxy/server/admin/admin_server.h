// AdminServer: the admin endpoint, on a loop of its own (docs/decisions/0007), so that requests and scrapes do not
// delay each other. Parses with the proxy's codec, computes responses in blocking tasks and writes them. The number of
// clients and the data buffered for each are limited. The loop also runs if no listener is configured, because other
// slow work of the server (a reload) uses it.
#pragma once

#include <memory>
#include <vector>

#include "exec/uv/driver.h"
#include "exec/uv/loop.h"
#include "proxy/net/bind.h"
#include "proxy/server/admin/admin_sessions.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/event_feed.h"
#include "proxy/server/admin/history.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy {

class ConfigInForce;
class Executors;

class AdminServer final : private AdminSessions::Host, private exec::TurnHost {
 public:
  AdminServer(Executors& executors, const ConfigInForce& config, const admin::AdminView& view,
              admin::AdminControl& control);
  ~AdminServer();

  // Inherited: sockets of the old process, per configured address.
  struct Inherited {
    std::optional<net::Bound> admin, metrics;
  };
  // The Fault names the address and the system's reason.
  Status open(Inherited inherited);
  // Starts the loop's thread; open() must have succeeded. Returns false if no thread is available.
  bool start();
  // Must be called when the loops of the workers have ended, and before the stop of the Executors. Every command that
  // was read gets a response. Returns when the loop has stopped.
  void stop();
  exec::UvLoop& loop() { return *loop_; }
  // Null if not configured.
  const net::Address* address() const { return main_ ? &main_->listener().address() : nullptr; }
  const net::Address* metrics_address() const { return metrics_ ? &metrics_->listener().address() : nullptr; }
  metrics::AdminSample sample() const;                        // of both listeners; any thread
  const admin::History& history() const { return history_; }  // any thread
  // Reads the token again, on a reload. Returns true if another one was valid before.
  Result<bool> read_token() LOOP_ONLY;
  // Sets the TLS identity of the admin endpoint; null: plain text.
  void set_identity(ListenerIdentity identity) LOOP_ONLY;
  ListenerIdentity identity() const LOOP_ONLY { return main_ ? main_->listener().identity() : nullptr; }
  // Inherited sockets accept clients from this call on: until then the old process answers all of them.
  void begin_accepting() LOOP_ONLY;
  // Must be called when a successor accepts: each connection ends after the response for which its client waits.
  void leave_clients() LOOP_ONLY;
  Fd copy_of_listener() LOOP_ONLY { return main_->listener().copy(); }
  Fd copy_of_metrics_socket() LOOP_ONLY { return metrics_->listener().copy(); }
  void on_left(net::SocketUser who) LOOP_ONLY;  // `who` does not use the sockets any more
  // Returns false, with the task closed, if too many tasks exist or the loop has ended.
  bool submit(exec::TaskPtr task) override LOOP_ONLY { return !ended_ && driver_->submit(std::move(task)); }

 private:
  void in_background(exec::TaskPtr task) override;
  void enter() override {}
  void leave() override {}
  void subscribed() override LOOP_ONLY;
  exec::StrategyParts strategy_parts() const override LOOP_ONLY;
  void add_strategy(const exec::Strategy& strategy) override LOOP_ONLY;
  void remove_strategy(const exec::Strategy& strategy) override;
  void render_events() LOOP_ONLY;
  void broadcast();
  void sample_history();

  Executors& executors_;
  const ConfigInForce& config_;
  const admin::AdminView& view_;
  admin::AdminControl& control_;
  std::unique_ptr<exec::UvLoop> loop_;
  std::unique_ptr<AdminSessions> main_, metrics_;
  admin::EventFeed feed_;
  admin::History history_;
  std::unique_ptr<exec::Timer> sampler_;      // runs while there is a page
  std::unique_ptr<exec::Timer> event_timer_;  // runs while the feed has a rendering
  std::unique_ptr<exec::Driver> driver_;
  bool started_ = false;
  bool ended_ = false;  // set and read by the thread that stopped the loop and drains its mail
};

}  // namespace carpool::proxy
