// AdminSessions: one door of the admin endpoint with its sessions, bounded apart from those of the other door. A full
// door ends the session that has waited longest for its client, and answers are made for a part of the sessions at
// most: so a probe always gets in, and is answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/intrusive.h"
#include "proxy/net/session_budget.h"
#include "proxy/server/admin/admin_listener.h"
#include "proxy/server/admin/admin_session.h"

namespace carpool::proxy {

class AdminSessions final : private AdminListener::Owner, private AdminSession::Owner {
 public:
  // What all doors share.
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
  ~AdminSessions();  // its loop has stopped and is drained

  AdminListener& listener() { return listener_; }
  const AdminListener& listener() const { return listener_; }
  std::size_t open() const { return open_.load(std::memory_order_relaxed); }  // any thread, as the next two
  std::uint64_t ended_for_others() const { return ended_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // To all that listen to /events, of whom one that has not taken the last message gets none now.
  void send_event(const std::string& whole, const std::string& changes) LOOP_ONLY;
  void destroy_closed() LOOP_ONLY;

 private:
  struct DeferredDeleter final : exec::Deferred {
    explicit DeferredDeleter(AdminSessions& sessions) : sessions_(sessions) {}
    void run() override LOOP_ONLY { sessions_.destroy_closed(); }
    AdminSessions& sessions_;
  };
  void on_accept(AdminListener& listener, Fd client) override LOOP_ONLY;
  void ended(AdminSession& session) override LOOP_ONLY;
  bool room_to_work() override LOOP_ONLY;
  void works(AdminSession& session) override LOOP_ONLY { budget_.works(session); }
  void waits(AdminSession& session) override LOOP_ONLY { budget_.waits(session); }
  bool room_to_listen() const override LOOP_ONLY { return host_.room_to_listen(); }
  void subscribed(AdminSession& session) override LOOP_ONLY;
  bool submit(exec::TaskPtr task) override LOOP_ONLY { return host_.submit(std::move(task)); }
  void in_background(exec::TaskPtr task) override { host_.in_background(std::move(task)); }

  // Listeners count as worked for; they are fewer than the difference.
  static constexpr std::size_t kMost = 128, kMostWorkedFor = 96;
  exec::Loop& loop_;
  Host& host_;
  const admin::AdminView& view_;
  admin::AdminControl& control_;
  AdminListener listener_;
  SessionBudget<AdminSession> budget_{kMost, kMostWorkedFor};  // its sessions are owned here
  List<AdminSession, SessionBudgetTag> closed_;                // the same
  DeferredDeleter undertaker_{*this};
  std::atomic<std::size_t> open_{0};  // written on the loop, shown anywhere: relaxed, no partner, as the next two
  std::atomic<std::uint64_t> ended_{0}, refused_{0};
};

}  // namespace carpool::proxy
