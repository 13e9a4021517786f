#include "proxy/server/admin/admin_sessions.h"

#include <utility>

#include "proxy/net/plain_transport.h"

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
  exec::assume_on_loop();  // which has stopped
  ended_sessions_.destroy_all();
  while (AdminSession* session = budget_.any()) {
    budget_.leave(*session);
    const std::unique_ptr<AdminSession> dies(session);
  }
}

void AdminSessions::on_accept(AdminListener& listener, Fd client) {
  if (budget_.full()) {
    AdminSession* const longest = budget_.longest_waiting();
    if (longest == nullptr) return;  // every session has a response in progress: the new client is closed
    longest->end();
    ended_.fetch_add(1, std::memory_order_relaxed);
  }
  const AdminSession::Asks asks{listener.rules(), view_, control_};
  AdminSession::Owner& owner = *this;
  auto session = std::make_unique<AdminSession>(loop_, owner, asks, net::make_plain(std::move(client)));
  if (!session->start()) return;
  open_.fetch_add(1, std::memory_order_relaxed);
  budget_.join(*session.release());  // owned by the budget's lists until it ended
}

bool AdminSessions::room_to_work() {
  if (budget_.room_to_work()) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void AdminSessions::subscribed(AdminSession& session) {
  budget_.works(session);
  host_.subscribed(session);
}

void AdminSessions::send_event(const std::string& whole, const std::string& changes) {
  for (AdminSession* session = budget_.next_worked_for(nullptr); session != nullptr;) {
    AdminSession* const after = budget_.next_worked_for(session);
    if (session->listening()) session->send_event(whole, changes);
    session = after;
  }
}

void AdminSessions::ended(AdminSession& session) {
  if (session.listening()) host_.stops_listening();
  budget_.leave(session);
  open_.fetch_sub(1, std::memory_order_relaxed);
  ended_sessions_.destroy_later(std::unique_ptr<AdminSession>(&session));
}

}  // namespace carpool::proxy
