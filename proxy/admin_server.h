// AdminServer: the admin endpoint, on a loop and thread of its own: a scrape of a thousand pools takes milliseconds
// that no request should wait for. Reads with the proxy's codec, asks proxy/admin for the answer, writes it. Its
// clients are bounded, and so is what waits for each of them. The thread runs also when no door is open: other slow
// work of the house (a reload) lives on it.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/intrusive.h"
#include "exec/uv/loop.h"
#include "proxy/admin/feed.h"
#include "proxy/admin_control.h"
#include "proxy/admin_door.h"
#include "proxy/admin_session.h"
#include "proxy/admin_view.h"

namespace carpool::proxy {

class House;

class AdminServer final : public AdminDoor::Owner, public AdminSession::Owner {
 public:
  explicit AdminServer(House& house);
  ~AdminServer();

  Status open();  // the doors that the configuration wants; the Fault names the address and the system's reason
  void start();   // its thread; open() must have succeeded
  exec::UvLoop& loop() { return *loop_; }
  // Null: not configured.
  const net::Address* address() const { return main_ ? &main_->address() : nullptr; }
  const net::Address* metrics_address() const { return metrics_ ? &metrics_->address() : nullptr; }
  Status read_token() LOOP_ONLY;  // again: a reload

 private:
  struct Undertaker final : exec::Deferred {
    explicit Undertaker(AdminServer& server) : server_(server) {}
    void run() override LOOP_ONLY { server_.bury(); }
    AdminServer& server_;
  };
  void came(AdminDoor& door, Fd client) override LOOP_ONLY;
  void ended(AdminSession& session) override LOOP_ONLY;
  bool room_to_listen() const override LOOP_ONLY { return listeners_ < kMostListeners; }
  void listens(AdminSession& session) override LOOP_ONLY;
  void tell();
  void bury() LOOP_ONLY;

  static constexpr std::size_t kMostSessions = 256;
  static constexpr std::size_t kMostListeners = 16;
  House& house_;
  HouseView view_;
  HouseControl control_;
  std::unique_ptr<exec::UvLoop> loop_;
  std::unique_ptr<AdminDoor> main_, metrics_;
  List<AdminSession, SessionTag> sessions_, graves_;  // owned
  Undertaker undertaker_{*this};
  std::size_t open_ = 0;
  std::size_t listeners_ = 0;  // of /events, among the sessions
  admin::Feed feed_;
  std::unique_ptr<exec::Timer> teller_;  // runs while somebody listens
  std::thread thread_;
};

}  // namespace carpool::proxy
