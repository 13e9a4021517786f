// AdminSessions: one listener of the admin endpoint with its sessions, limited separately from the other listener's.
// When full it ends the session that has waited longest for its client, and only part of the sessions may have
// responses in progress, so a probe is always accepted and answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "exec/deferred_deleter.h"
#include "proxy/net/session_budget.h"
#include "proxy/server/admin/admin_listener.h"
#include "proxy/server/admin/admin_session.h"

namespace carpool::proxy {

class AdminSessions final : private AdminListener::Owner, private AdminSession::Owner {
 public:
  // Shared by all listeners.
  class Host {
   public:
    virtual bool room_to_listen() const LOOP_ONLY = 0;
    virtual void subscribed(AdminSession& session) LOOP_ONLY = 0;
    virtual void stops_listening() LOOP_ONLY = 0;
    virtual bool submit(exec::TaskPtr task) LOOP_ONLY = 0;
    virtual void in_background(exec::TaskPtr task) = 0;

   protected:
    ~Host() = default;
  };
  AdminSessions(exec::Loop& loop, Host& host, const admin::AdminView& view, admin::AdminControl& control,
                bool metrics_only);
  ~AdminSessions();  // its loop must have stopped and been drained

  AdminListener& listener() { return listener_; }
  const AdminListener& listener() const { return listener_; }
  std::size_t open() const { return open_.load(std::memory_order_relaxed); }  // any thread, as the next two
  std::uint64_t ended_for_others() const { return ended_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Sends an event to all listeners of /events, except those that have not read the last one.
  void send_event(const std::string& whole, const std::string& changes) LOOP_ONLY;

 private:
  void on_accept(AdminListener& listener, Fd client) override LOOP_ONLY;
  void ended(AdminSession& session) override LOOP_ONLY;
  bool room_to_work() override LOOP_ONLY;
  void works(AdminSession& session) override LOOP_ONLY { budget_.works(session); }
  void waits(AdminSession& session) override LOOP_ONLY { budget_.waits(session); }
  bool room_to_listen() const override LOOP_ONLY { return host_.room_to_listen(); }
  void subscribed(AdminSession& session) override LOOP_ONLY;
  bool submit(exec::TaskPtr task) override LOOP_ONLY { return host_.submit(std::move(task)); }
  void in_background(exec::TaskPtr task) override { host_.in_background(std::move(task)); }

  // /events listeners count as in progress; their number is below the difference.
  static constexpr std::size_t kMost = 128, kMaxWorkedFor = 96;
  exec::Loop& loop_;
  Host& host_;
  const admin::AdminView& view_;
  admin::AdminControl& control_;
  AdminListener listener_;
  SessionBudget<AdminSession> budget_{kMost, kMaxWorkedFor};  // owns its sessions
  exec::DeferredDeleter<AdminSession, SessionBudgetTag> ended_sessions_;
  std::atomic<std::size_t> open_{0};  // written on the loop, read anywhere: relaxed, no partner, as the next two
  std::atomic<std::uint64_t> ended_{0}, refused_{0};
};

}  // namespace carpool::proxy
