#include "proxy/server/admin/admin_sessions.h"

#include <utility>

#include "proxy/net/plain_transport.h"

namespace carpool::proxy {

AdminSessions::AdminSessions(exec::Loop& loop, Host& host, const admin::AdminView& view, admin::AdminControl& control,
                             bool metrics_only)
    : loop_(loop), host_(host), view_(view), control_(control), door_(loop, *this, metrics_only) {}

AdminSessions::~AdminSessions() {
  exec::assume_on_loop();  // which has stopped
  bury();
  while (AdminSession* session = budget_.any()) {
    budget_.leave(*session);
    const std::unique_ptr<AdminSession> dies(session);
  }
}

void AdminSessions::came(AdminDoor& door, Fd client) {
  if (budget_.full()) {
    AdminSession* const longest = budget_.longest_waiting();
    if (longest == nullptr) return;  // all are worked for: the newcomer is closed
    longest->end();
    ended_.fetch_add(1, std::memory_order_relaxed);
  }
  const AdminSession::Asks asks{door.rules(), view_, control_};
  AdminSession::Owner& owner = *this;
  auto session = std::make_unique<AdminSession>(loop_, owner, asks, net::make_plain(client.release()));
  if (!session->start()) return;
  open_.fetch_add(1, std::memory_order_relaxed);
  budget_.join(*session.release());  // owned by the budget's lists until bury()
}

bool AdminSessions::room_to_work() {
  if (budget_.room_to_work()) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void AdminSessions::listens(AdminSession& session) {
  budget_.works(session);
  host_.listens(session);
}

void AdminSessions::offer(const std::string& whole, const std::string& changes) {
  for (AdminSession* session = budget_.next_worked_for(nullptr); session != nullptr;) {
    AdminSession* const after = budget_.next_worked_for(session);
    if (session->listening()) session->offer(whole, changes);
    session = after;
  }
}

void AdminSessions::ended(AdminSession& session) {
  if (session.listening()) host_.stops_listening();
  budget_.leave(session);
  graves_.push_back(session);
  open_.fetch_sub(1, std::memory_order_relaxed);
  if (!undertaker_.linked()) loop_.defer(undertaker_);
}

void AdminSessions::bury() {
  while (!graves_.empty()) const std::unique_ptr<AdminSession> dies(&graves_.pop_front());
}

}  // namespace carpool::proxy
