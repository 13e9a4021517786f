// ClientHandshake: a client of a TLS listener, or inside an intercepted CONNECT, until its handshake is complete. The
// connection then passes to an H1Client or an H2Client. The handshake must end within the listener's header_timeout. It
// uses no TLS state and no task until the client's first record has arrived completely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "exec/loop.h"
#include "metrics/events.h"
#include "proxy/downstream/client_identity.h"
#include "proxy/downstream/handshake_owner.h"
#include "proxy/downstream/handshake_turns.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/downstream/opening_client.h"

namespace carpool::exec {
class Submitter;
}

namespace carpool::proxy {

struct InterceptedConnect;

class ClientHandshake final : public OpeningClient, private exec::Watcher, private HandshakeTurns::Waiter {
 public:
  // `socket` has just been accepted.
  ClientHandshake(const ExchangeContext& context, HandshakeOwner& owner, Listener& listener, ListenerIdentity identity,
                  Fd socket, std::string_view peer);
  ClientHandshake(const ExchangeContext& context, HandshakeOwner& owner, Listener& listener,
                  std::unique_ptr<InterceptedConnect> connect, Fd socket, std::string_view peer);
  ~ClientHandshake() override;
  Status start() LOOP_ONLY;  // registers the socket; on failure the caller drops the client

  Listener* listener() const override { return established_ ? nullptr : &listener_; }
  void end() override LOOP_ONLY;

 private:
  struct Step;
  struct FreeStep {
    void operator()(Step* step) const;  // destroys the step, or leaves that to its return if it runs on another thread
  };
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  bool try_to_begin(exec::Ready ready) LOOP_ONLY;
  bool begin(exec::Ready ready) LOOP_ONLY;
  bool admit_hello(bool ended) LOOP_ONLY;
  bool tunnel(metrics::Intercept why) LOOP_ONLY;
  void become_tunnel(metrics::Intercept why) LOOP_ONLY;
  void count_failure(metrics::ClientHandshake end) LOOP_ONLY;
  int fd() const;
  void proceed() LOOP_ONLY;
  void on_turn() override LOOP_ONLY;
  void returned() LOOP_ONLY;
  void on_result(Result<bool> done) LOOP_ONLY;
  void fail(metrics::ClientHandshake end, const std::string& why) LOOP_ONLY;
  void on_deadline() override;
  void close() LOOP_ONLY;

  HandshakeOwner& owner_;
  exec::Submitter* tasks_ = nullptr;  // executor of the steps, set when the handshake begins; nullptr: the loop
  std::unique_ptr<InterceptedConnect> connect_;  // nullptr: TLS of the listener itself
  ListenerIdentity identity_;                    // until the handshake begins
  Fd socket_;                                    // until the handshake begins
  std::unique_ptr<Step, FreeStep> step_;         // set when the handshake begins
  exec::WatchKey key_;
  const ClientPeer peer_;
  bool established_ = false;
  std::uint8_t hello_reads_ = 0;              // reads of a CONNECT's client so far
  std::optional<metrics::Intercept> tunnel_;  // set if the CONNECT is to become a tunnel: the reason
};

}  // namespace carpool::proxy
