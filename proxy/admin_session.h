// One client of the admin endpoint: HTTP/1.1, one request at a time, no request bodies of use.
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

   protected:
    ~Owner() = default;
  };
  AdminSession(exec::Loop& loop, Owner& owner, const admin::Rules& rules, const admin::AdminView& view,
               std::unique_ptr<net::Transport> transport);
  ~AdminSession();
  Status start() LOOP_ONLY;

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void advance() LOOP_ONLY;
  bool read_some() LOOP_ONLY;
  bool take(std::string_view bytes) LOOP_ONLY;
  void answer() LOOP_ONLY;
  void refuse(const Fault& fault) LOOP_ONLY;
  bool flush() LOOP_ONLY;
  void on_timer();
  void end() LOOP_ONLY;
  void on_body(std::string_view) override {}
  void on_trailer(std::string_view, std::string_view) override {}

  exec::Loop& loop_;
  Owner& owner_;
  const admin::Rules& rules_;
  const admin::AdminView& view_;
  std::unique_ptr<net::Transport> transport_;
  exec::WatchKey key_;
  http::RequestReader reader_;
  http::RequestHead head_;
  std::string pending_;
  Outbox outbox_;
  exec::Timer timer_;
  bool close_when_sent_ = false;
  bool over_ = false;
};

}  // namespace carpool::proxy
