// H1Client: a client connection that uses HTTP/1.1. Reads requests one at a time and in order (pipelined ones wait in
// `pending_`), passes each to an Exchange, writes the response and decides how the connection ends. An idle client owns
// no buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/assert.h"
#include "base/intrusive.h"
#include "exec/loop.h"
#include "proxy/config/config.h"
#include "proxy/downstream/client_connection.h"
#include "proxy/downstream/client_identity.h"
#include "proxy/downstream/h1_client_state.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/batch_lease.h"
#include "proxy/net/discarded_input.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy {

class ClientOwner;
struct ExchangeContext;
class PrivateConnection;

class H1Client final : public ClientConnection, public exec::Watcher, public ClientStream, private exec::Deferred {
 public:
  // `point`: the listener's, or one that this client owns.
  H1Client(const ExchangeContext& context, ClientOwner& clients, Listener& listener, const ListenPoint& point,
           std::unique_ptr<net::Transport> transport, std::string_view peer);
  ~H1Client() override;
  Status start() LOOP_ONLY;  // registers the socket; on failure the caller drops the client
  // Starts a client that has sent `head`, a CONNECT, and has received the 200. The CONNECT is a tunnel because of
  // `why`.
  Status start(std::string head, metrics::Intercept why) LOOP_ONLY;

  Listener* listener() const override { return state_ == State::handed_over ? nullptr : &listener_; }

  // ---- ClientStream: called by the exchange ----
  std::string_view peer() const override;
  std::optional<metrics::Intercept> stays_tunnel() const override { return tunnel_; }
  int socket() const override { return transport_->fd(); }
  std::string_view tls_version() const override { return {tls_, tls_size_}; }
  bool accepted_while_shedding() const override { return accepted_while_shedding_; }
  std::uint64_t fairness_key() const override;
  bool request_complete() const override LOOP_ONLY {
    return request_state_ == RequestState::complete || request_state_ == RequestState::body_at_hand;
  }
  bool send_informational(const http::ResponseHead& head) override LOOP_ONLY;
  bool send_head(const http::ResponseHead& head, bool close) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool splices_body() const override LOOP_ONLY;
  bool splice_body(net::Transport& from, std::size_t max_bytes, net::IoResult& io) override LOOP_ONLY;
  std::uint16_t send_fault(const Fault& fault, bool keep) override LOOP_ONLY;
  void send_local_reply(bool keep) override LOOP_ONLY;
  void send_tunnel(const http::ResponseHead* switched) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return write_queue_.size(); }
  std::uint64_t accepted() const override LOOP_ONLY { return write_queue_.bytes_written(); }
  void on_tunnel() override LOOP_ONLY;
  void shut_write_when_sent() override LOOP_ONLY;
  void resume() override LOOP_ONLY { run_soon(); }
  void on_exchange_end(AfterExchange next) override LOOP_ONLY;
  // The private connection stays with this client until either side closes.
  PrivateLease borrow_private(const OriginRuntime& origin) override LOOP_ONLY;
  bool keep_private(const OriginRuntime& origin, pool::Lease& lease) override LOOP_ONLY;

  // Closes when idle. A running exchange responds with Connection: close. A client whose last response did not announce
  // the close may send one more request within a short time.
  void drain() override LOOP_ONLY;
  void start_graceful_close() override LOOP_ONLY;
  bool end_if_idle() override LOOP_ONLY;
  void end() override LOOP_ONLY;

 private:
  using State = H1ClientState;
  using RequestState = H1RequestState;
  // PrivateState: the state of the connection that authenticated this client. `broken`: it has ended, and this
  // connection ends with it.
  enum class PrivateState : std::uint8_t { none, kept, lent, broken };
  // Fin: the FIN of the client. `forwarded`: the tunnel was notified of it.
  enum class Fin : std::uint8_t { none, received, forwarded };
  // Drain: `draining`: the connection ends after the current response. `ending`: also if it is idle.
  enum class Drain : std::uint8_t { none, draining, ending };
  // ResponseEnd: the connection after the current response. `closes`: the response carries Connection: close.
  // `delimited`: the close is its end, or it is a tunnel. `truncated`: a fault inside the tunnelled protocol replaces
  // it.
  enum class ResponseEnd : std::uint8_t { persists, closes, delimited, truncated };

  void enter(State state) {
    CARPOOL_ASSERT(kH1ClientTransitions.allows(state_, state));
    state_ = state;
  }
  void enter(RequestState state) {
    CARPOOL_ASSERT(kH1RequestTransitions.allows(request_state_, state));
    request_state_ = state;
  }
  bool sends() const { return state_ <= State::truncated; }  // responses
  bool over() const { return state_ == State::closed || state_ == State::handed_over; }
  bool closes_when_sent() const { return state_ == State::closing || state_ == State::truncated; }
  bool lingers() const { return state_ == State::lingering || state_ == State::resetting; }
  // Returns true if the exchange has its request head and has not ended.
  bool exchange_runs() const {
    return request_state_ >= RequestState::body_at_hand && request_state_ <= RequestState::complete;
  }

  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_private_end();
  void run() override LOOP_ONLY;  // exec::Deferred: continues in another turn
  void run_soon() LOOP_ONLY;
  void advance() LOOP_ONLY;
  bool step() LOOP_ONLY;
  bool flush_waiting() LOOP_ONLY;
  BatchLease& out() LOOP_ONLY;  // the batch that the next flush() sends
  http::ReplyRules reply_rules(bool close) const LOOP_ONLY;
  http::ReplyRules begin_local_reply(bool keep) LOOP_ONLY;
  bool may_read() const LOOP_ONLY;
  bool read_some() LOOP_ONLY;
  net::Io read_ahead() LOOP_ONLY;
  void notice_hangup() LOOP_ONLY;
  bool parse(std::string_view bytes) LOOP_ONLY;
  bool match_preface(std::string_view bytes) LOOP_ONLY;
  void leave_socket() LOOP_ONLY;
  void upgrade_to_h2(std::string_view bytes) LOOP_ONLY;
  std::size_t feed(std::string_view bytes) LOOP_ONLY;
  void drop_exchange() LOOP_ONLY;
  bool on_parse_result(const http::ParseResult& fed, std::size_t more) LOOP_ONLY;
  bool begin_request(std::size_t more) LOOP_ONLY;
  bool is_gateway() const LOOP_ONLY;
  bool ends_connect_here(std::size_t more) LOOP_ONLY;
  void on_eof() LOOP_ONLY;
  void refuse(const Fault& fault) LOOP_ONLY;
  void close_when_sent(bool truncated) LOOP_ONLY;
  void end_gracefully() LOOP_ONLY;
  bool discard_input() LOOP_ONLY;
  void await_more_input() LOOP_ONLY;
  void lost() LOOP_ONLY;
  void note_use() LOOP_ONLY;
  void note_unused() LOOP_ONLY;
  bool half_closed() const LOOP_ONLY;
  void watch_half_close() LOOP_ONLY;
  bool waits_for_early_response() LOOP_ONLY;
  void give_up_half_closed() LOOP_ONLY;
  void end_soon() LOOP_ONLY;
  bool finds_input() LOOP_ONLY;
  Instant last_request_until() const LOOP_ONLY;
  void cut_off() LOOP_ONLY;
  void poll_acks() LOOP_ONLY;
  // Returns true if a part of a head was read that may still be completed.
  bool in_head() const {
    const bool in_preface = preface_ > 0 && preface_ != kNoPreface;
    return state_ == State::open && (in_preface || (request_state_ == RequestState::head && reader_.in_head()));
  }
  AfterExchange end_batch(AfterExchange next) LOOP_ONLY;
  void close() LOOP_ONLY;
  void arm_timer() LOOP_ONLY;
  void on_timer();

  // An idle client costs little more than this object: larger parts that few clients need are allocated for those.
  const ExchangeContext& context_;
  ClientOwner& clients_;
  Listener& listener_;
  const config::Listen& listen_;
  std::unique_ptr<net::Transport> transport_;
  exec::WatchKey key_;
  Exchange* exchange_ = nullptr;  // from the first byte of a head to the end of its exchange
  http::RequestReader reader_;
  std::unique_ptr<std::string> pending_;  // read but not yet parsed: pipelined requests; nullptr: none
  WriteQueue write_queue_;
  BatchLease out_;  // from the first send_*() to flush(), or to the end of the exchange
  exec::Timer timer_;
  const ClientPeer peer_;
  mutable ClientIdentity identity_;
  std::unique_ptr<PrivateConnection> private_;
  const char* const tls_;  // TLS version, a static text of `tls_size_` bytes; empty for plain text
  Instant half_closed_until_ = kNever;
  Instant progress_at_{};      // when a response last ended, the client last read bytes of one, or lingering began
  std::uint32_t skipped_ = 0;  // bytes of this body to skip, because the request was answered at once
  // The bytes at the last check for progress: in cut_off() those that the client's kernel has not acknowledged, in
  // waits_for_early_response() those written to the client.
  std::uint32_t checked_bytes_ = 0;
  static constexpr std::uint64_t kMaxDiscarded = std::uint64_t{1} << 30;
  net::DiscardedInput discarded_{kMaxDiscarded};  // while lingering
  const std::uint8_t tls_size_;
  PrivateState private_state_ = PrivateState::none;
  http::Framing reply_framing_ = http::Framing::none;
  static constexpr std::uint8_t kNoPreface = 255;
  std::uint8_t preface_ = 0;  // bytes of the HTTP/2 preface with which the connection began; 0 before the first byte
  std::optional<metrics::Intercept> tunnel_;  // why its CONNECT was not intercepted
  State state_ = State::open;
  RequestState request_state_ = RequestState::none;
  Fin fin_ = Fin::none;
  Drain drain_ = Drain::none;
  ResponseEnd response_end_ = ResponseEnd::persists;
  std::uint8_t left_ = 0;  // reads and requests that this turn may still begin
  const bool accepted_while_shedding_ : 1;
  bool advancing_ : 1 = false;         // inside advance(), where a nested call returns at once
  bool informed_ : 1 = false;          // a 1xx of the exchange was sent after the client's FIN
  bool connect_answered_ : 1 = false;  // CONNECT was answered before this client took the connection over
  bool unannounced_ : 1 = false;       // the current response began without Connection: close before the drain
  bool head_timed_ : 1 = false;        // header_timeout is running
  bool shut_after_flush_ : 1 = false;  // tunnel: send FIN after the write queue
};

}  // namespace carpool::proxy
