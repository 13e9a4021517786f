// Supply: counts the resources that serve the waiters of a destination: dials in progress, connections that admit
// borrowers, and sessions that drain. The counters depend on each other: only the functions below change them, and each
// ends in check().
//
//   dial_begun -> opened -> [drained] -> closed
//              -> dial_failed
//
// Places that become free or idle soon are counted beside it, without the mutex: PendingPlaces.
#pragma once

#include <array>
#include <cstdint>

#include "pool/destination/environment.h"
#include "pool/policy/cause.h"

namespace carpool::pool {

class Supply final {
 public:
  // The purpose of a dial. It does not change until the dial ends.
  struct Dial {
    ProtocolMask asked = ProtocolMask::any;
    OpenCause cause = OpenCause::first;
  };

  // `expected`: see expect().
  explicit Supply(std::uint32_t expected) : expected_(expected) {}

  // ---- the life of a connection ----
  void dial_begun(Dial dial);
  void dial_failed(Dial dial);  // or was cancelled
  void opened(Dial dial, Protocol kind);
  void drained();  // a session admits no new borrower
  void closed(Protocol kind, bool draining);

  // ---- messages that cancel a dial; each may arrive after its dial ended ----
  void cancel_sent();
  void cancel_arrived();

  // The next connection is expected to serve this many borrowers at once; 0: unknown.
  void expect(std::uint32_t streams) { expected_ = streams; }
  std::uint32_t expected() const { return expected_; }
  std::uint32_t streams_a_dial() const { return expected_ != 0 ? expected_ : 1; }

  std::uint32_t alive() const { return alive_; }  // connections and dials not yet closed in the ledger
  std::uint32_t dials() const { return dials_; }
  std::uint32_t h1_dials() const { return h1_dials_; }             // for HTTP/1.1 only
  std::uint32_t wide_dials() const { return dials_ - h1_dials_; }  // all others
  std::uint32_t waiter_dials() const { return waiter_dials_; }     // those of wide_dials() that a waiter caused
  std::uint32_t redials() const { return redials_; }               // successors of connections that are replaced
  std::uint32_t cancels() const { return cancels_; }               // messages in flight
  // Dials that remain even if every message in flight cancels one.
  std::uint32_t lasting_dials() const { return dials_ > cancels_ ? dials_ - cancels_ : 0; }
  // Returns true if a message may be sent for one more of the dials that waiters caused.
  bool may_cancel() const { return waiter_dials_ + h1_dials_ > cancels_; }
  // The borrowers that the dials in progress are expected to serve.
  std::uint32_t streams_coming() const { return h1_dials_ + wide_dials() * streams_a_dial(); }

  // Connections that admit new borrowers, by Protocol.
  const std::array<std::uint32_t, kProtocols>& held() const { return held_; }
  std::uint32_t held(Protocol kind) const { return held_[static_cast<std::size_t>(kind)]; }
  std::uint32_t draining() const { return draining_; }  // sessions that admit no new borrower

 private:
  void dial_ended(Dial dial);
  void check() const;

  std::uint32_t expected_;
  std::uint32_t alive_ = 0;
  std::uint32_t dials_ = 0, h1_dials_ = 0, waiter_dials_ = 0, redials_ = 0;
  std::uint32_t cancels_ = 0;
  std::array<std::uint32_t, kProtocols> held_{};
  std::uint32_t draining_ = 0;
};

}  // namespace carpool::pool
