// AdminSessions: one listener of the admin endpoint with its sessions, limited separately from the other listener's. If
// it is full, it ends the session that has waited longest for its client. Only part of the sessions may have responses
// in progress, so a probe is always accepted and answered.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "exec/deferred_deleter.h"
#include "proxy/net/session_budget.h"
#include "proxy/server/admin/admin_listener.h"
#include "proxy/server/admin/admin_opening.h"
#include "proxy/server/admin/admin_session.h"
#include "proxy/server/admin/h2_connection.h"

namespace carpool::proxy {

class AdminSessions final : private AdminListener::Owner,
                            private AdminOpening::Owner,
                            private AdminH2Connection::Owner {
 public:
  // Host: the services that all listeners share.
  class Host {
   public:
    virtual void subscribed() LOOP_ONLY = 0;
    virtual bool submit(exec::TaskPtr task) LOOP_ONLY = 0;
    virtual void in_background(exec::TaskPtr task) = 0;
    // For the strategies of connections.
    virtual exec::StrategyParts strategy_parts() const LOOP_ONLY = 0;
    virtual void add_strategy(const exec::Strategy& strategy) LOOP_ONLY = 0;  // adds its counts to those of the program
    virtual void remove_strategy(const exec::Strategy& strategy) = 0;

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
  std::uint64_t abuses(http::H2Abuse kind) const {
    return abuses_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  std::uint64_t handshakes(metrics::ClientHandshake result) const {
    return handshakes_[static_cast<std::size_t>(result)].load(std::memory_order_relaxed);
  }
  std::size_t listeners() const { return listeners_.load(std::memory_order_relaxed); }  // of /events; any thread
  void poll_awaited() LOOP_ONLY;                                                        // of all sessions
  // Stops accepting, and ends each connection after the response for which its client waits.
  void leave_clients() LOOP_ONLY;
  // Sends an event to all listeners of /events, except those that have not read the last one.
  void send_event(const admin::Event& event) LOOP_ONLY;

 private:
  void on_accept(AdminListener& listener, Fd client) override LOOP_ONLY;
  void opened(AdminOpening& opening, AdminConnection::Protocol protocol, std::unique_ptr<net::Transport> transport,
              Instant deadline) override LOOP_ONLY;
  void ended(AdminConnection& connection) override LOOP_ONLY;
  void count_handshake(metrics::ClientHandshake result) override LOOP_ONLY {
    handshakes_[static_cast<std::size_t>(result)].fetch_add(1, std::memory_order_relaxed);
  }
  void closing(AdminH2Connection& connection) override LOOP_ONLY;
  void unused(AdminH2Connection& connection) override LOOP_ONLY;
  bool begin_response() override;
  void end_response() override { h2_responses_.fetch_sub(1, std::memory_order_relaxed); }
  bool may_start_work() override LOOP_ONLY;
  void mark_working(AdminConnection& connection) override LOOP_ONLY { budget_.mark_working(connection); }
  void mark_waiting(AdminConnection& connection) override LOOP_ONLY { budget_.mark_waiting(connection); }
  bool leaving() const override LOOP_ONLY { return leaving_; }
  bool may_subscribe() override LOOP_ONLY;
  void subscribed() override LOOP_ONLY;
  void unsubscribed() override LOOP_ONLY { listeners_.fetch_sub(1, std::memory_order_relaxed); }
  bool submit(exec::TaskPtr task) override LOOP_ONLY { return host_.submit(std::move(task)); }
  void in_background(exec::TaskPtr task) override { host_.in_background(std::move(task)); }
  void join(std::unique_ptr<AdminConnection> connection) LOOP_ONLY;
  bool make_room() LOOP_ONLY;
  bool make_room_for_h2() LOOP_ONLY;
  void add_h2(std::unique_ptr<net::Transport> transport, Instant deadline) LOOP_ONLY;

  // kMaxListeners: of /events. Those over HTTP/1.1 count as in progress. An HTTP/2 connection with a response in
  // progress cannot be ended either. All three limits together are less than kMax, so there is always a connection to
  // end.
  static constexpr std::size_t kMax = 128, kMaxWorkedFor = 96, kMaxH2 = 15, kMaxH2Responses = 96, kMaxListeners = 16;
  exec::Loop& loop_;
  Host& host_;
  const admin::AdminView& view_;
  admin::AdminControl& control_;
  AdminListener listener_;
  SessionBudget<AdminConnection> budget_{kMax, kMaxWorkedFor};  // owns its connections
  List<AdminH2Connection, AdminH2ConnectionTag> h2_;            // those that use HTTP/2
  std::size_t h2_count_ = 0;
  bool leaving_ = false;
  List<AdminH2Connection, SessionBudgetTag> closing_;  // owned; other threads may still use them
  exec::DeferredDeleter<AdminConnection, SessionBudgetTag> ended_sessions_;
  std::atomic<std::size_t> h2_responses_{0};         // in progress; any thread: relaxed, no partner, as the following
  std::atomic<std::size_t> open_{0}, listeners_{0};  // written on the loop, read anywhere
  std::atomic<std::uint64_t> ended_{0}, refused_{0};
  std::array<std::atomic<std::uint64_t>, http::kH2Abuses> abuses_{};
  std::array<std::atomic<std::uint64_t>, metrics::kClientHandshakes.size()> handshakes_{};
};

}  // namespace carpool::proxy
