// One client of the admin endpoint: HTTP/1.1, one request at a time with a small body, or a listener of /events from
// its request to its end.
#pragma once

#include <memory>
#include <string>

#include "base/intrusive.h"
#include "exec/loop.h"
#include "proxy/admin/routes.h"
#include "proxy/http/h1_codec.h"
#include "proxy/net/transport.h"
#include "proxy/outbox.h"

namespace carpool::proxy {

class AdminSession final : public exec::Watcher, public ListHook<struct SessionTag>, private http::BodySink {
 public:
  class Owner {
   public:
    virtual void ended(AdminSession& session) LOOP_ONLY = 0;  // destroy it, later
    virtual bool room_to_listen() const LOOP_ONLY = 0;
    virtual void listens(AdminSession& session) LOOP_ONLY = 0;  // from now on offer() events

   protected:
    ~Owner() = default;
  };
  struct Asks {
    const admin::Rules& rules;
    const admin::AdminView& view;
    admin::AdminControl& control;
  };
  AdminSession(exec::Loop& loop, Owner& owner, const Asks& asks, std::unique_ptr<net::Transport> transport);
  ~AdminSession();
  Status start() LOOP_ONLY;

  bool listening() const { return listening_; }
  // The news for a listener: `changes` for one who had everything before, else the `whole`. Dropped while the last
  // message is not taken.
  void offer(const std::string& whole, const std::string& changes) LOOP_ONLY;

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void advance() LOOP_ONLY;
  bool read_some() LOOP_ONLY;
  bool take(std::string_view bytes) LOOP_ONLY;
  bool drop_some() LOOP_ONLY;
  void answer() LOOP_ONLY;
  admin::Answer made() LOOP_ONLY;
  void send_head(const admin::Answer& answer, Gather& out) LOOP_ONLY;
  void refuse(const Fault& fault) LOOP_ONLY;
  bool flush() LOOP_ONLY;
  void on_timer();
  void end() LOOP_ONLY;
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view, std::string_view) override {}

  exec::Loop& loop_;
  Owner& owner_;
  const Asks asks_;
  std::unique_ptr<net::Transport> transport_;
  exec::WatchKey key_;
  http::RequestReader reader_;
  http::RequestHead head_;
  std::string body_;
  bool body_too_long_ = false;
  std::string pending_;
  Outbox outbox_;
  exec::Timer timer_;
  bool close_when_sent_ = false;
  bool listening_ = false;
  bool up_to_date_ = false;  // a listener that has everything but the next change
  bool over_ = false;
};

}  // namespace carpool::proxy
