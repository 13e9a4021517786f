// HandoverClient: what a starting process was given by the one that it takes over from. The sockets take the place of
// those it would have bound, so clients who connect meanwhile wait in the same queue, whoever accepts them. When it is
// ready it says so, and only then the other one stops; should it never come so far, nothing has changed.
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
#include "proxy/net/bind.h"
#include "proxy/server/handover/handover_state.h"
#include "proxy/server/handover/handover_word.h"

namespace carpool::proxy {

class OriginRegistry;
struct OriginRuntime;
namespace net {
class EgressPolicy;
}

class HandoverClient final : private exec::Watcher {
 public:
  // Blocks for a few milliseconds: asks the process that listens at [handover] address. Null: no process does. A Fault:
  // the socket belongs to another user than root and this process's, or its owner gives nothing (it is stopping, or
  // takes this process for another user's).
  static Result<std::unique_ptr<HandoverClient>> ask(const std::string& address);
  ~HandoverClient();

  // The socket that has this role and was configured with this address, once; nothing: it has to be bound.
  std::optional<net::Bound> take(std::string_view role, const std::string& address);
  // What is known of origins goes to their pools, before the loops run. Reads certificates.
  void restore_learned_state(OriginRegistry& origins, const net::EgressPolicy& policy);

  // On `loop`, the first worker's: opens as many connections as the other one had, `rate` a second, then tells it to
  // go, and calls `ready` once when it has closed its listeners.
  void begin(exec::Loop& loop, std::uint32_t rate, exec::Bound ready) LOOP_ONLY;
  void stop();  // before that loop goes

 private:
  struct Warm {
    OriginRuntime* origin;
    std::uint32_t open;     // wanted
    std::uint32_t to_dial;  // of them, not yet begun
  };
  explicit HandoverClient(Fd socket) : socket_(std::move(socket)) {}
  void teach_one(OriginRegistry& origins, const net::EgressPolicy& policy, const HandoverState::Origin& one);
  void tick();
  void send_ready() LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void end() LOOP_ONLY;

  Fd socket_;
  HandoverState manifest_;
  std::vector<Fd> descriptors_;  // of manifest_.sockets
  std::vector<Warm> to_warm_;
  exec::Loop* loop_ = nullptr;  // from begin() on
  std::uint32_t rate_ = 0;
  exec::Bound ready_;  // until it was called
  std::unique_ptr<exec::Timer> timer_;
  exec::WatchKey key_;
  HandoverWord word_{HandoverWord::kGone};
  Instant give_up_{};
  bool said_go_ = false;
};

}  // namespace carpool::proxy
