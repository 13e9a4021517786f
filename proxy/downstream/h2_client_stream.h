// H2ClientStream: one stream of a client's HTTP/2 connection, as the client side of an Exchange. Requests are
// dispatched only after the whole read has been parsed, whatever follows their heads in it, so a stream opened and
// reset in the same read (Rapid Reset) never reaches an origin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "base/intrusive.h"
#include "proxy/downstream/tunnel_inbox.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/h2/stream.h"

namespace carpool::proxy {

class H2Client;

Fault violation_of_client(std::string_view violation);  // the fault of a request whose client violated HTTP/2

class H2ClientStream final : public ClientStream,
                             public http::H2StreamUser,
                             public ListHook<struct H2FreeTag>,
                             public ListHook<struct H2TodoTag>,
                             public ListHook<struct H2PumpTag> {
 public:
  H2ClientStream(H2Client& client, const ListenPoint& listener) : ClientStream(listener), client_(client) {}

  void open(http::H2Stream& stream, Exchange& exchange) LOOP_ONLY;    // the exchange has its request head
  void refuse(http::H2Stream& stream, const Fault& fault) LOOP_ONLY;  // without an exchange: the head exceeds a limit
  void continue_stream() LOOP_ONLY;  // dispatches the request, or delivers tunnel bytes that arrived early
  void pump() LOOP_ONLY;             // sends collected body data upstream
  void abandon() LOOP_ONLY;          // the connection is gone
  void time_out(std::string_view rule) LOOP_ONLY;        // ends a running request, and resets its stream
  void break_off(std::string_view violation) LOOP_ONLY;  // the stream is gone, because the client violated HTTP/2
  void give_up(const Fault& fault) LOOP_ONLY;            // replies with `fault` if no byte of a response was sent
  void note_stopping() LOOP_ONLY;                        // the process cuts off what has not ended
  // Must be called when the client read bytes of the frames of `pull` that had waited for its socket.
  void note_read_by_client(std::uint64_t pull) LOOP_ONLY;
  bool busy() const { return exchange_ != nullptr; }
  // Returns true for a tunnel that both sides have ended, whose origin has not got all of the client's bytes yet: it
  // continues without its stream, and without the client's connection.
  bool outlives_stream() const { return outlives_; }

  // ---- ClientStream ----
  std::string_view peer() const override;
  int socket() const override;
  std::optional<metrics::Intercept> stays_tunnel() const override { return stays_tunnel_; }
  std::string_view tls_version() const override;
  bool accepted_while_shedding() const override;
  std::uint64_t fairness_key() const override;
  bool request_complete() const override LOOP_ONLY { return complete_; }
  bool send_informational(const http::ResponseHead& head) override LOOP_ONLY;
  bool send_head(const http::ResponseHead& head, bool close) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  std::uint16_t send_fault(const Fault& fault, bool keep) override LOOP_ONLY;
  void send_local_reply(bool keep) override LOOP_ONLY;
  std::string_view why_not_switched(const http::ResponseHead& switched) const override LOOP_ONLY;
  void send_tunnel(const http::ResponseHead* switched) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY;
  std::uint64_t accepted() const override LOOP_ONLY { return framed_; }
  std::size_t writable_bytes() const override LOOP_ONLY;
  bool may_buffer_more() const override LOOP_ONLY;
  void on_tunnel() override LOOP_ONLY;
  void shut_write_when_sent() override LOOP_ONLY;
  void resume() override LOOP_ONLY;
  void on_exchange_end(AfterExchange next) override LOOP_ONLY;

  // ---- H2StreamUser ----
  void on_head(http::ResponseHead&) override {}  // clients send no response heads
  void on_body(std::string_view bytes) override;
  void on_trailers(const http::Fields& fields) override;
  void on_end() override;
  void on_sent(std::size_t bytes) override;
  void on_closed(http::H2Error error) override;

 private:
  void begin() LOOP_ONLY;
  void deliver_received() LOOP_ONLY;
  void deliver_trailers(const http::Fields& fields) LOOP_ONLY;
  void give_room() LOOP_ONLY;
  void empty_inbox() LOOP_ONLY;
  http::H2Error error_of_cut() const LOOP_ONLY;
  std::uint16_t send_error(const Fault& fault, bool grpc, bool head) LOOP_ONLY;
  void send_own(const std::string& text, std::string_view method) LOOP_ONLY;
  void forget() LOOP_ONLY;

  H2Client& client_;
  http::H2Stream* stream_ = nullptr;
  Exchange* exchange_ = nullptr;
  std::string key_;                 // key of a WebSocket handshake
  TunnelInbox inbox_;               // bytes that arrived before the request was dispatched or the tunnel established
  http::Fields received_trailers_;  // that arrived before the request was dispatched
  std::size_t framed_ = 0;          // bytes of the response that were framed
  std::uint64_t last_pull_ = 0;     // the last pull with bytes of the response
  std::size_t held_ = 0;            // bytes that the exchange received but cannot send yet
  std::optional<metrics::Intercept> stays_tunnel_;  // why its CONNECT was not intercepted
  bool begun_ = false;                              // the request was dispatched
  bool tunnel_ = false;                             // CONNECT, plain or extended: raw bytes instead of a body
  bool complete_ = false;                           // the whole request was read
  bool ended_ = false;                              // the whole response was passed on
  bool outlives_ = false;                           // see outlives_stream()
};

}  // namespace carpool::proxy
