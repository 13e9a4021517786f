// Acceptor: accepts the clients of one listening socket, on one loop. It accepts a few per turn, so that those already
// accepted are served in between. If the system cannot accept a client, because no descriptor is left or another
// resource is short, it pauses: meanwhile clients wait in the kernel's queue, and no event announces them again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/net/address.h"
#include "proxy/net/bind.h"

namespace carpool::proxy::net {

// Another process that uses the listening socket: the one that passed it to this process, or the one that has a copy of
// it.
enum class SocketUser : std::uint8_t { predecessor, successor };

class Acceptor final : private exec::Watcher, private exec::Deferred {
 public:
  // The decision whether to accept another client now.
  enum class Gate : std::uint8_t {
    open,
    closed,  // not before resume()
    pause,   // not before kPause has passed
  };
  static constexpr Duration kPause = std::chrono::milliseconds(100);

  class Owner {
   public:
    // Called before each client.
    virtual Gate gate() LOOP_ONLY { return Gate::open; }
    // Receives a client: non-blocking, closed on exec, with the socket options that it inherits from the listening
    // socket. May stop the acceptor.
    virtual void on_client(Acceptor& acceptor, Fd client, const Address& peer) LOOP_ONLY = 0;
    // Called if the system could not accept a client, for example because no descriptor is left (`error`: errno). A
    // pause follows.
    virtual void on_accept_failed(int error) LOOP_ONLY { static_cast<void>(error); }

   protected:
    ~Owner() = default;
  };

  Acceptor(exec::Loop& loop, Owner& owner, int most_per_turn);
  ~Acceptor();

  // Takes over the socket and accepts its clients, including those already waiting. Returns the loop's Fault.
  Status start(Bound bound) LOOP_ONLY;
  // Like start(), with an inherited socket, or one that is bound for its owner only. Must be called before the loop's
  // thread starts.
  Status open_for_owner(const std::string& address, int backlog, std::optional<Bound> inherited);
  // start() in two steps, where the address must be known before clients are accepted.
  void adopt(Bound bound);
  Status start() LOOP_ONLY;
  void resume() LOOP_ONLY;  // the gate may be open again; does not shorten a pause
  // Accepts up to `most` of the clients that wait in the system's queue, because close() would reset them. Does nothing
  // if another process serves the queue as well.
  void accept_waiting(int most) LOOP_ONLY;
  void stop() LOOP_ONLY;   // closes the socket; another process may keep listening on its copy
  void close() LOOP_ONLY;  // stop(), and removes the file of a Unix socket that no other process uses

  const Address& address() const { return address_; }  // with the real port; kept after stop()
  Fd copy();                                           // a copy of the socket, for a successor process
  void on_left(SocketUser who);                        // `who` does not use the socket any more

 private:
  void on_ready(exec::Ready) override LOOP_ONLY { accept_some(); }
  void run() override LOOP_ONLY { accept_some(); }
  void on_pause_over();
  void accept_some() LOOP_ONLY;
  bool accept_one() LOOP_ONLY;
  bool is_one_waiting() const;
  bool pause() LOOP_ONLY;

  exec::Loop& loop_;
  Owner& owner_;
  const int most_per_turn_;
  Fd fd_;
  exec::WatchKey key_;
  bool started_ = false;  // a client may be waiting
  Address address_;
  std::array<bool, 2> used_by_{};  // by SocketUser
  exec::Timer pause_;
};

}  // namespace carpool::proxy::net
