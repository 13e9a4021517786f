// AdminConnection: one connection of a listener of the admin endpoint, in any protocol, and its interface to the
// listener. Lives on the admin loop.
#pragma once

#include <memory>
#include <string>

#include "exec/loop.h"
#include "exec/task.h"
#include "proxy/net/session_budget.h"

namespace carpool::proxy::admin {
class AdminControl;
class AdminView;
class SharedRules;
struct Event;
}  // namespace carpool::proxy::admin

namespace carpool::proxy {

// Timeout of the arrival of a request, and of the reading of its response.
inline constexpr Duration kAdminTimeout = std::chrono::seconds(30);

class AdminConnection : public BudgetedSession {
 public:
  enum class Protocol : std::uint8_t { h1, h2 };
  class Owner {
   public:
    virtual void ended(AdminConnection& connection) LOOP_ONLY = 0;  // the owner destroys the connection later
    // Must be called before a slow response is started. The response counts as in progress until the client has read it
    // and may send the next request. Returns false if too many are in progress.
    virtual bool may_start_work() LOOP_ONLY = 0;
    virtual void mark_working(AdminConnection& connection) LOOP_ONLY = 0;
    virtual void mark_waiting(AdminConnection& connection) LOOP_ONLY = 0;
    virtual bool leaving() const LOOP_ONLY = 0;  // a successor accepts: each response is the last of its connection
    virtual bool may_subscribe() LOOP_ONLY = 0;  // false counts as a refused request
    // Called when the connection is listening(): it receives send_event() from now on, for the first time during this
    // call.
    virtual void subscribed() LOOP_ONLY = 0;
    virtual void unsubscribed() LOOP_ONLY = 0;  // one subscription has ended
    // Submits work that may block; a rejected task is closed. in_background() may be called on any thread, for work
    // that never touches a loop.
    virtual bool submit(exec::TaskPtr task) LOOP_ONLY = 0;
    virtual void in_background(exec::TaskPtr task) = 0;

   protected:
    ~Owner() = default;
  };
  struct Backend {
    const admin::SharedRules& rules;  // the listener's; a reload may change them
    const admin::AdminView& view;
    admin::AdminControl& control;
  };

  AdminConnection() = default;
  AdminConnection(const AdminConnection&) = delete;
  AdminConnection& operator=(const AdminConnection&) = delete;
  virtual ~AdminConnection() = default;

  virtual void end() LOOP_ONLY = 0;  // closes the connection
  // Closes it after the response for which the client waits, or at once, with its /events, if there is none.
  virtual void end_soon() LOOP_ONLY = 0;
  // Returns true if the connection must not be ended to make room, because a response is being produced or events are
  // awaited.
  virtual bool busy() const { return false; }
  virtual bool listening() const LOOP_ONLY { return false; }
  virtual void poll_awaited() LOOP_ONLY = 0;  // sends the pending responses that are known by now
  // Sends an event: its changes, if there are any, to a listener that is up to date, otherwise the whole. Skipped while
  // the last message is unread.
  virtual void send_event(const admin::Event& event) LOOP_ONLY { static_cast<void>(event); }
};

}  // namespace carpool::proxy
