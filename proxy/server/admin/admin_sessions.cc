#include "proxy/server/admin/admin_sessions.h"

#include <utility>

#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/server_context.h"

namespace carpool::proxy {

AdminSessions::AdminSessions(exec::Loop& loop, Host& host, const admin::AdminView& view, admin::AdminControl& control,
                             bool metrics_only)
    : loop_(loop),
      host_(host),
      view_(view),
      control_(control),
      listener_(loop, *this, metrics_only),
      ended_sessions_(loop) {}

AdminSessions::~AdminSessions() {
  exec::assume_on_loop();  // the loop has stopped
  ended_sessions_.destroy_all();
  while (!h2_.empty()) {
    AdminH2Connection& connection = h2_.pop_front();
    budget_.leave(connection);
    closing_.push_back(connection);
  }
  while (!closing_.empty()) {
    const std::unique_ptr<AdminH2Connection> dies(&closing_.pop_front());
    host_.remove_strategy(dies->strategy());
  }
  while (AdminConnection* connection = budget_.any()) {
    budget_.leave(*connection);
    const std::unique_ptr<AdminConnection> dies(connection);
  }
}

// ---- limits ----

// Ends the connection that has waited longest. Returns false if a response is in progress on each.
bool AdminSessions::make_room() {
  if (!budget_.full()) return true;
  AdminConnection* longest = budget_.next_waiting(nullptr);
  while (longest != nullptr && longest->busy()) longest = budget_.next_waiting(longest);  // at most kMaxH2 times
  if (longest == nullptr) return false;
  longest->end();
  ended_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Like make_room(), among the HTTP/2 connections, each of which may hold more memory.
bool AdminSessions::make_room_for_h2() {
  if (h2_count_ < kMaxH2) return true;
  for (AdminH2Connection& one : h2_) {
    if (one.busy()) continue;
    one.end();
    ended_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool AdminSessions::may_start_work() {
  if (budget_.may_start_work()) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool AdminSessions::begin_response() {
  if (h2_responses_.fetch_add(1, std::memory_order_relaxed) < kMaxH2Responses) return true;
  h2_responses_.fetch_sub(1, std::memory_order_relaxed);
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

// ---- connections ----

void AdminSessions::on_accept(AdminListener&, Fd client) {
  if (!make_room()) return;  // the new client is closed
  AdminOpening::Owner& owner = *this;
  const ListenerIdentity& identity = listener_.identity();
  auto opening = identity == nullptr
                     ? std::make_unique<AdminOpening>(loop_, owner, net::make_plain(std::move(client)))
                     : std::make_unique<AdminOpening>(loop_, owner, identity->accept(std::move(client)));
  if (opening->start()) join(std::move(opening));
}

void AdminSessions::join(std::unique_ptr<AdminConnection> connection) {
  open_.fetch_add(1, std::memory_order_relaxed);
  budget_.join(*connection.release());  // owned by the budget's lists until it ended
}

void AdminSessions::opened(AdminOpening& opening, AdminConnection::Protocol protocol,
                           std::unique_ptr<net::Transport> transport, Instant deadline) {
  ended(opening);
  if (protocol == AdminConnection::Protocol::h2) return add_h2(std::move(transport), deadline);
  const AdminConnection::Backend backend{listener_.rules(), view_, control_};
  AdminConnection::Owner& owner = *this;
  auto session = std::make_unique<AdminSession>(loop_, owner, backend, std::move(transport));
  if (session->start(deadline)) join(std::move(session));
}

void AdminSessions::add_h2(std::unique_ptr<net::Transport> transport, Instant deadline) {
  if (!make_room_for_h2()) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const AdminConnection::Backend backend{listener_.rules(), view_, control_};
  AdminH2Connection::Owner& owner = *this;
  auto connection =
      std::make_unique<AdminH2Connection>(loop_, owner, backend, host_.strategy_parts(), std::move(transport));
  if (!connection->start(deadline)) return;
  if (leaving_) connection->end_soon();
  host_.add_strategy(connection->strategy());
  h2_.push_back(*connection);
  ++h2_count_;
  join(std::move(connection));
}

void AdminSessions::ended(AdminConnection& connection) {
  budget_.leave(connection);
  open_.fetch_sub(1, std::memory_order_relaxed);
  ended_sessions_.destroy_later(std::unique_ptr<AdminConnection>(&connection));
}

void AdminSessions::closing(AdminH2Connection& connection) {
  abuses_[static_cast<std::size_t>(connection.abuse())].fetch_add(1, std::memory_order_relaxed);
  budget_.leave(connection);
  open_.fetch_sub(1, std::memory_order_relaxed);
  connection.ListHook<AdminH2ConnectionTag>::unlink();
  --h2_count_;
  closing_.push_back(connection);
}

void AdminSessions::unused(AdminH2Connection& connection) {
  host_.remove_strategy(connection.strategy());
  connection.ListHook<SessionBudgetTag>::unlink();
  ended_sessions_.destroy_later(std::unique_ptr<AdminConnection>(&connection));
}

void AdminSessions::leave_clients() {
  listener_.stop_accepting();
  leaving_ = true;
  for (auto next : {&SessionBudget<AdminConnection>::next_waiting, &SessionBudget<AdminConnection>::next_working}) {
    for (AdminConnection* one = (budget_.*next)(nullptr); one != nullptr;) {
      AdminConnection* const after = (budget_.*next)(one);
      one->end_soon();
      one = after;
    }
  }
}

void AdminSessions::poll_awaited() {
  for (AdminConnection* one = budget_.next_waiting(nullptr); one != nullptr;) {
    AdminConnection* const after = budget_.next_waiting(one);
    one->poll_awaited();
    one = after;
  }
}

// ---- events ----

bool AdminSessions::may_subscribe() {
  if (listeners() < kMaxListeners) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void AdminSessions::subscribed() {
  listeners_.fetch_add(1, std::memory_order_relaxed);
  host_.subscribed();
}

void AdminSessions::send_event(const admin::Event& event) {
  for (AdminConnection* one = budget_.next_working(nullptr); one != nullptr;) {
    AdminConnection* const after = budget_.next_working(one);
    if (one->listening()) one->send_event(event);
    one = after;
  }
  for (AdminH2Connection& one : h2_) {
    if (one.listening()) one.send_event(event);
  }
}

}  // namespace carpool::proxy
