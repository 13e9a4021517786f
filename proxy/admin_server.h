// AdminServer: the admin endpoint's sockets, on a loop and thread of their own: a scrape of a thousand pools takes
// milliseconds that no request should wait for. Reads with the proxy's codec, asks proxy/admin for the answer, writes
// it. Its clients are bounded.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/intrusive.h"
#include "exec/uv/loop.h"
#include "proxy/admin/guard.h"
#include "proxy/admin_session.h"
#include "proxy/admin_view.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

class House;

class AdminServer final : private exec::Watcher, public AdminSession::Owner {
 public:
  explicit AdminServer(House& house);
  ~AdminServer();

  Status open();  // bind and listen; the Fault names the address and the system's reason
  void start();   // its thread; open() must have succeeded
  const net::Address& address() const { return address_; }

 private:
  struct Undertaker final : exec::Deferred {
    explicit Undertaker(AdminServer& server) : server_(server) {}
    void run() override LOOP_ONLY { server_.bury(); }
    AdminServer& server_;
  };
  void on_retry();
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  bool trusted(int fd) const;
  void ended(AdminSession& session) override LOOP_ONLY;
  void bury() LOOP_ONLY;
  Status read_token();

  House& house_;
  HouseView view_;
  admin::Rules rules_;
  std::unique_ptr<exec::UvLoop> loop_;
  Fd fd_;
  exec::WatchKey key_;
  net::Address address_;
  List<AdminSession, SessionTag> sessions_, graves_;  // owned
  Undertaker undertaker_{*this};
  std::size_t open_ = 0;
  std::unique_ptr<exec::Timer> retry_;  // after the system had no descriptor for a client
  std::thread thread_;
};

}  // namespace carpool::proxy
