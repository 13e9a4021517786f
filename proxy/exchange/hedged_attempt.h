// HedgedAttempt: the second attempt of a request whose first one is late (request.hedge). Both are alive until one of
// them has the head of a final response. The exchange then takes this attempt over and ends its own, or cancels this
// one. An attempt that was taken over passes all calls of its stream to the exchange.
//
// Belongs to one exchange, created by the first request that needs it, and freed with the exchange: a late grant of the
// pool finds live memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "exec/loop.h"
#include "pool/queue/borrower.h"
#include "proxy/exchange/exchange_values.h"
#include "proxy/exchange/hedge_owner.h"

namespace carpool::proxy {

class CrossLoopStreams;
struct OriginRuntime;

class HedgedAttempt final : public pool::Borrower, private UpstreamStreamHandler {
 public:
  HedgedAttempt(exec::Loop& loop, CrossLoopStreams& remote, HedgeOwner& owner);
  ~HedgedAttempt();

  // ---- the exchange's calls ----
  // Borrows a connection, and sends the request as soon as there is one. Must be idle.
  void start(OriginRuntime& origin, const pool::BorrowRequest& want) LOOP_ONLY;
  bool idle() const { return state_ == State::idle; }
  // Returns true if the exchange may still get a response by it: it waits for a connection, or sent().
  bool pending() const { return state_ == State::waiting || sent(); }
  // Returns true if the request was sent and its response did not begin.
  bool sent() const { return state_ == State::sent; }
  // Gives the place in the wait queue, or the connection, back. Must be pending().
  void cancel() LOOP_ONLY;
  // Moves the attempt to the exchange. Must be sent(); end() follows when the attempt has ended.
  AttemptValues take_over() LOOP_ONLY;
  void end() LOOP_ONLY;
  http::ResponseHead& response() LOOP_ONLY;
  Instant leased() const { return leased_; }
  void release_buffers() LOOP_ONLY;

  // ---- the pool's calls ----
  void on_lease(pool::Lease lease) override;
  void on_refused(Fault fault) override;

 private:
  enum class State : std::uint8_t { idle, waiting, sent, taken_over };

  void send(pool::Lease lease) LOOP_ONLY;
  void abandon_attempt(pool::CloseCause cause) LOOP_ONLY;
  AttemptState fail(pool::CloseCause cause) LOOP_ONLY;
  bool taken_over() const { return state_ == State::taken_over; }

  // ---- UpstreamStreamHandler ----
  bool wants_response() const override LOOP_ONLY { return owner_.wants_response(); }
  std::size_t writable_bytes() const override LOOP_ONLY { return owner_.writable_bytes(); }
  bool may_buffer_more() const override LOOP_ONLY { return owner_.may_buffer_more(); }
  AttemptState on_response_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view name, std::string_view value, bool sensitive) override;
  AttemptState on_read_complete() override LOOP_ONLY;
  AttemptState on_response_end() override LOOP_ONLY;
  AttemptState on_failure(StreamFailure failure) override LOOP_ONLY;
  AttemptState on_writable() override LOOP_ONLY;
  AttemptState on_switched(std::string_view rest) override LOOP_ONLY;
  AttemptState on_tunnel_eof() override LOOP_ONLY;

  exec::Loop& loop_;
  HedgeOwner& owner_;
  const std::unique_ptr<UpstreamStreams> streams_;
  OriginRuntime* origin_ = nullptr;       // not if idle
  std::optional<AttemptValues> attempt_;  // if sent
  Instant leased_{};
  State state_ = State::idle;
};

}  // namespace carpool::proxy
