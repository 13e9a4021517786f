// HandoverClient: the sockets and learned state that a starting process receives from the process it replaces. The
// received sockets are used instead of binding new ones, so clients that connect meanwhile wait in the same accept
// queue. The old process stops only when this process reports that it is ready; if that never happens, the old process
// continues unaffected.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "exec/bound.h"
#include "exec/loop.h"
#include "exec/timer.h"
#include "pool/origin.h"
#include "proxy/net/bind.h"
#include "proxy/server/handover/dial_pace.h"
#include "proxy/server/handover/handover_message.h"
#include "proxy/server/handover/handover_state.h"

namespace carpool::proxy {

class OriginRegistry;
namespace net {
class EgressPolicy;
}

class HandoverClient final : private exec::Watcher {
 public:
  // Connects to the process that listens at [handover] address; blocks for a few milliseconds. Returns null if there is
  // none. Returns a Fault if the socket belongs to a user other than root and this process's, or if the old process
  // refuses (it is stopping, or this process runs as another user).
  static Result<std::unique_ptr<HandoverClient>> ask(const std::string& address);
  ~HandoverClient();

  // Returns the socket with this role and configured address, once. If empty, the caller must bind it.
  std::optional<net::Bound> take(std::string_view role, const std::string& address);
  // Copies the learned state of origins to their pools. Must be called before the loops run. Reads certificates.
  void restore_learned_state(OriginRegistry& origins, const net::EgressPolicy& policy);

  // Must be called on `loop`, the first worker's, when it runs. Calls `left` once when the old process has closed its
  // listeners or has ended, even before begin(). If another process takes over instead, calls `late`: this process must
  // stop.
  struct Calls {
    exec::Bound left, ready, late;
  };
  void watch(exec::Loop& loop, const Calls& calls) LOOP_ONLY;
  // Must be called after watch(). Opens as many connections as the old process had, `rate` per second, then tells the
  // old process to stop. Calls `ready` once: after `left`, or earlier if the confirmation is late; not after `late`.
  void begin(std::uint32_t rate) LOOP_ONLY;
  // Returns true if the service manager was told to watch this process instead of the old one.
  bool announced() const { return go_deadline_ != Instant{}; }
  // Ends the hand-over: nothing more is sent or called. Must be called before that loop is destroyed.
  void stop() LOOP_ONLY;

 private:
  struct Warm {
    pool::Origin origin;    // looked up for each batch, because its pool may be removed meanwhile
    std::uint32_t open;     // number wanted
    std::uint32_t to_dial;  // dials not yet started
  };
  explicit HandoverClient(Fd socket) : socket_(std::move(socket)) {}
  void restore_one(OriginRegistry& origins, const net::EgressPolicy& policy, const HandoverState::Origin& one);
  static void pause_one(OriginRegistry& origins, const HandoverState::Paused& one);
  void tick();
  void dial_some(std::uint32_t most, Instant now) LOOP_ONLY;
  bool watch_socket() LOOP_ONLY;
  void send_ready() LOOP_ONLY;
  bool send_go() LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  bool hear() LOOP_ONLY;
  void on_late() LOOP_ONLY;
  void end() LOOP_ONLY;
  void report_ready() LOOP_ONLY;
  void leave_socket() LOOP_ONLY;
  void on_old_left() LOOP_ONLY;

  Fd socket_;
  HandoverState state_;
  std::vector<Fd> descriptors_;        // sockets listed in state_
  std::vector<net::Address> unused_;   // Unix sockets that this configuration does not use
  OriginRegistry* origins_ = nullptr;  // set by restore_learned_state()
  std::vector<Warm> to_warm_;
  exec::Loop* loop_ = nullptr;  // set by watch()
  DialPace pace_{0};
  Calls calls_;                         // each is cleared before it is called
  std::unique_ptr<exec::Timer> timer_;  // made by begin()
  exec::WatchKey key_;
  HandoverMessage word_{HandoverMessage::kGone, HandoverMessage::kLate};
  Instant give_up_{};
  Instant go_deadline_{};                       // until then sending "go" is tried; unset before the first try
  std::string_view go_ = HandoverMessage::kGo;  // the unsent part of "go"
  bool watched_ = false;
  bool ready_sent_ = false;  // set also if the hand-over was cancelled: no confirmation may follow
};

}  // namespace carpool::proxy
