// H2Client: a client connection that began with the HTTP/2 preface (RFC 9113 §3.3). Moves bytes between the socket and
// the session, assigns each stream to an Exchange, writes once per turn and decides how the connection ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/loop.h"
#include "proxy/config/config.h"
#include "proxy/downstream/client_connection.h"
#include "proxy/downstream/client_identity.h"
#include "proxy/downstream/h2_client_stream.h"
#include "proxy/downstream/request_pacer.h"
#include "proxy/http/h2/session.h"
#include "proxy/net/discarded_input.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy {

class Listener;
class ListenPoint;
class ClientOwner;
class ConnectInterceptor;
struct ExchangeContext;

class H2Client final : public ClientConnection,
                       private exec::Watcher,
                       private exec::Deferred,
                       private PacedClient,
                       private http::H2Sink {
 public:
  // `point`: the listener's, or one that this client owns.
  H2Client(const ExchangeContext& context, ClientOwner& clients, Listener& listener, const ListenPoint& point,
           std::unique_ptr<net::Transport> transport, std::string_view peer);
  ~H2Client() override;
  // Registers the socket and parses the bytes that were already read: the preface, or nothing, and the bytes after it.
  // If that fails, the caller drops the client.
  Status start(std::string_view preface, std::string_view bytes) LOOP_ONLY;

  Listener* listener() const override { return &listener_; }
  void drain() override LOOP_ONLY;
  void start_graceful_close() override LOOP_ONLY { drain(); }
  bool end_if_idle() override LOOP_ONLY;
  void end() override LOOP_ONLY;

  // ---- called by its requests ----
  const ExchangeContext& context() const { return context_; }
  http::H2Session& session() { return session_; }
  std::string_view peer() const;
  ConnectInterceptor& interceptor() const LOOP_ONLY;
  std::uint64_t fairness_key() const;
  // Schedules pump() for `request`, whose exchange collects body data while a read is parsed and sends it afterwards.
  void pump_soon(H2ClientStream& request) LOOP_ONLY;
  void forget_pump(H2ClientStream& request) LOOP_ONLY;
  void continue_soon(H2ClientStream& request) LOOP_ONLY;  // schedules continue_stream() for this turn or the next one
  void flush_soon() LOOP_ONLY;
  std::uint64_t pulls() const { return pulls_; }  // identifies the frames that wait for the socket
  int socket() const { return transport_->fd(); }
  std::string_view tls_version() const { return tls_; }
  bool accepted_while_shedding() const { return accepted_while_shedding_; }
  bool over_high_watermark() const;  // true if the data that waits for this client exceeds the high watermark
  bool may_buffer_more() const;      // true if the high watermark cannot be reached because few streams are open
  void recycle(H2ClientStream& request) LOOP_ONLY;
  void tunnel_outlives_stream() LOOP_ONLY { ++outliving_; }
  void outliving_tunnel_ended() LOOP_ONLY { --outliving_; }
  void record_malformed(std::string_view violation) LOOP_ONLY;  // of a request that was not dispatched

 private:
  enum class State : std::uint8_t { open, lingering, closed };

  http::H2StreamUser* on_request(http::H2Stream& stream, http::RequestHead& head) override;
  void on_refused_head(http::H2Stream& stream, FaultKind kind) override;
  void on_malformed_head(const char* violation) override;
  void on_stream_refused() override;
  void on_settings(const http::H2PeerSettings&) override {}
  void on_goaway(http::StreamId, http::H2Error) override {}
  void on_ping_ack(std::uint64_t payload) override;

  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void run() override LOOP_ONLY;                // exec::Deferred
  void continue_requests() override LOOP_ONLY;  // PacedClient
  void advance(std::uint32_t requests) LOOP_ONLY;
  bool may_read() const LOOP_ONLY;
  bool may_continue() const LOOP_ONLY;
  void read_and_write() LOOP_ONLY;
  void read_all(std::size_t& budget) LOOP_ONLY;
  void note_use() LOOP_ONLY;
  void note_unused() LOOP_ONLY;
  void parse(std::string_view bytes) LOOP_ONLY;
  void continue_streams() LOOP_ONLY;
  void pump_all() LOOP_ONLY;
  void note_progress() LOOP_ONLY;
  bool flush_waiting() LOOP_ONLY;
  bool write_all(std::size_t& budget) LOOP_ONLY;
  void close_if_done() LOOP_ONLY;
  void linger() LOOP_ONLY;
  void discard_input() LOOP_ONLY;
  void close() LOOP_ONLY;
  void close_socket() LOOP_ONLY;
  void destroy_when_unused() LOOP_ONLY;
  void send_final_goaway() LOOP_ONLY;
  bool exceeds_streams() const;
  H2ClientStream& acquire_request() LOOP_ONLY;
  void end_requests(std::string_view rule) LOOP_ONLY;
  Instant head_deadline() const LOOP_ONLY;
  Instant idle_deadline() const LOOP_ONLY;
  void arm_timer() LOOP_ONLY;
  bool holds_spares() const LOOP_ONLY;
  void free_idle_streams() LOOP_ONLY;
  void on_timer();

  const ExchangeContext& context_;
  ClientOwner& clients_;
  RequestPacer& pacer_;
  const bool accepted_while_shedding_;  // accepted while new clients were being refused
  const std::string_view tls_;          // TLS version, a static text; empty for plain text
  Listener& listener_;
  const ListenPoint& point_;
  const config::Listen& listen_;
  std::unique_ptr<net::Transport> transport_;
  exec::WatchKey key_;
  http::H2Session session_;
  WriteQueue write_queue_;
  exec::Timer timer_;
  const ClientPeer peer_;
  mutable ClientIdentity identity_;
  std::vector<std::unique_ptr<H2ClientStream>> requests_;
  List<H2ClientStream, H2FreeTag> free_;
  List<H2ClientStream, H2TodoTag> todo_;
  List<H2ClientStream, H2PumpTag> unpumped_;
  std::uint32_t unpumped_count_ = 0;
  std::uint64_t pulls_ = 0;          // of frames out of the session
  std::uint32_t running_ = 0;        // requests that have not ended
  std::uint32_t outliving_ = 0;      // tunnels among them that outlive their streams
  std::uint32_t turn_requests_ = 0;  // requests that may still begin in this turn
  State state_ = State::open;
  bool advancing_ = false;
  bool used_ = false;          // the client has sent a byte
  bool expects_heads_ = true;  // the next read is a small one
  bool draining_ = false;
  bool goaway_sent_ = false;
  bool counted_ = false;        // the metrics contain its protocol abuse
  bool message_waits_ = false;  // the last pull contained bytes of responses; they may wait in the write queue
  Instant progress_at_{};       // last progress: start of an idle period, or of not reading responses
  Instant drain_until_ = kNever;
  net::DiscardedInput discarded_;
};

}  // namespace carpool::proxy
