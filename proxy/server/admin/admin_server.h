// AdminServer: the admin endpoint, on a loop of its own (docs/decisions/0007): no request waits for a scrape, and no
// scrape for requests. Reads with the proxy's codec, asks proxy/server/admin for the answer as a blocking task, writes
// it. Its clients are bounded, and so is what waits for each of them. The loop runs also when no door is open: other
// slow work of the house (a reload) lives on it.
#pragma once

#include <memory>
#include <vector>

#include "exec/uv/driver.h"
#include "exec/uv/loop.h"
#include "proxy/net/bind.h"
#include "proxy/server/admin/admin_sessions.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/event_feed.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy {

class ConfigInForce;
class Executors;

class AdminServer final : private AdminSessions::Host, private exec::TurnHost {
 public:
  AdminServer(Executors& executors, const ConfigInForce& config, const admin::AdminView& view,
              admin::AdminControl& control);
  ~AdminServer();

  // A socket of each address that is configured may be there already, inherited from the process before.
  struct Inherited {
    std::optional<net::Bound> admin, metrics;
  };
  // The Fault names the address and the system's reason.
  Status open(Inherited inherited);
  // Its loop begins to turn; open() must have succeeded. False: no thread is left.
  bool start();
  void stop();  // returns when the loop has stopped; before the house's execution does
  exec::UvLoop& loop() { return *loop_; }
  // Null: not configured.
  const net::Address* address() const { return main_ ? &main_->listener().address() : nullptr; }
  const net::Address* metrics_address() const { return metrics_ ? &metrics_->listener().address() : nullptr; }
  metrics::AdminSample sample() const;  // of the doors; any thread
  Status read_token() LOOP_ONLY;        // again: a reload
  void close_listeners() LOOP_ONLY;     // nobody new: a successor has the sockets
  Fd copy_of_door() const LOOP_ONLY { return main_->listener().copy(); }
  Fd copy_of_metrics_door() const LOOP_ONLY { return metrics_->listener().copy(); }
  // False: too many tasks exist, or nobody turns the loop any more; it was closed.
  bool submit(exec::TaskPtr task) override LOOP_ONLY { return !ended_ && driver_->submit(std::move(task)); }

 private:
  void in_background(exec::TaskPtr task) override;
  void enter() override {}
  void leave() override {}
  bool room_to_listen() const override LOOP_ONLY { return listeners_ < kMostListeners; }
  void subscribed(AdminSession& session) override LOOP_ONLY;
  void stops_listening() override LOOP_ONLY { --listeners_; }
  void broadcast();

  static constexpr std::size_t kMostListeners = 16;
  Executors& executors_;
  const ConfigInForce& config_;
  const admin::AdminView& view_;
  admin::AdminControl& control_;
  std::unique_ptr<exec::UvLoop> loop_;
  std::unique_ptr<AdminSessions> main_, metrics_;
  std::size_t listeners_ = 0;  // of /events, among the sessions
  admin::Feed feed_;
  std::unique_ptr<exec::Timer> teller_;  // runs while somebody listens
  std::unique_ptr<exec::Driver> driver_;
  bool started_ = false;
  bool ended_ = false;  // set and read by the thread that stopped it, which drains its mail
};

}  // namespace carpool::proxy
