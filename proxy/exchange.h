// Exchange: one request and its response, from the head to the last byte; a run-to-completion state machine whose table
// is exchange_table.h. Lives in its loop's slab and is never freed while the loop runs, so that a grant in the mail
// always finds it (and sees by its ticket whether it is still meant).
//
// Who calls: the Client (request side), the Connection (response side), the Destination (lease), its own timer. It
// tells its client that it is over once, last, with everything given back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/loop.h"
#include "pool/lease.h"
#include "pool/waiters.h"
#include "proxy/exchange_table.h"
#include "proxy/http/forward.h"
#include "proxy/http/h1_codec.h"
#include "proxy/retry.h"
#include "proxy/upload.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

class Client;
class Worker;
struct OriginContext;

// What one connection may read in one turn before the others get theirs.
inline constexpr std::size_t kTurnBytes = std::size_t{256} * 1024;

// How the client's connection goes on after an exchange.
enum class ClientNext : std::uint8_t {
  keep,   // the next request may come
  close,  // everything was said; close gracefully
  cut,    // the response broke off: the client must be able to tell
  gone,   // the client's socket failed
};

// What an exchange did, for metrics and the access log.
struct ExchangeFacts {
  OriginContext* origin = nullptr;
  Instant began{}, leased{}, head_back{};
  std::uint16_t status = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  // bodies
  std::uint64_t connection = 0;
  std::uint32_t uses_before = 0;
  std::optional<pool::Opened> opened;  // when the connection was opened for this
  std::uint32_t retries = 0;
  bool asked_pool = false;
  Duration waited{};  // for a connection, granted or not
  std::optional<Fault> fault;
};

class Exchange final : public pool::Borrower,
                       public UpstreamUser,
                       public ListHook<struct ExchangeTag>,
                       private exec::Deferred,
                       private http::BodySink {
 public:
  explicit Exchange(Worker& worker);
  ~Exchange();

  // ---- the client's calls, in the order of a request ----
  http::RequestHead& request() LOOP_ONLY { return request_; }
  const http::RequestHead& request() const LOOP_ONLY { return request_; }
  void begin(Client& client) LOOP_ONLY;  // the head is complete
  void on_request_body(std::string_view bytes) LOOP_ONLY;
  void on_request_trailer(std::string_view name, std::string_view value) LOOP_ONLY;
  void on_request_end() LOOP_ONLY;
  void pump() LOOP_ONLY;                            // send upstream what came in this event
  bool wants_input() const LOOP_ONLY;               // may the client be read now?
  void on_request_broken(Fault fault) LOOP_ONLY;    // the body's framing failed, or the client ended inside it
  void on_client_progress() LOOP_ONLY { touch(); }  // it takes its answer
  void on_client_writable() LOOP_ONLY;              // its outbox drained below the mark
  void on_client_gone() LOOP_ONLY;
  // After 101: raw bytes of the client, and its FIN.
  bool tunnelled() const LOOP_ONLY { return state_ == ExchangeState::tunnel; }
  void on_tunnel_bytes(std::string_view bytes) LOOP_ONLY;
  void on_tunnel_eof() LOOP_ONLY;

  // Bytes of its answer went out, but not all: whoever ends the client now must not make it look complete.
  bool half_told() const { return state_ == ExchangeState::relaying || state_ == ExchangeState::tunnel; }
  // In the slab: large buffers are given back.
  void tidy() LOOP_ONLY;
  ExchangeState state() const LOOP_ONLY { return state_; }
  const ExchangeFacts& facts() const LOOP_ONLY { return facts_; }
  std::string_view phase() const LOOP_ONLY;  // for a person: what it is doing now

  // ---- the pool's ----
  void on_lease(pool::Lease lease) override;
  void on_refused(Fault fault) override;
  // ---- the connection's ----
  void on_upstream_ready() override LOOP_ONLY;

 private:
  // The way of a request, top to bottom.
  bool may_forward(const http::Target& target) LOOP_ONLY;
  void answer_here() LOOP_ONLY;
  void borrow(bool fresh) LOOP_ONLY;
  void take(pool::Lease lease) LOOP_ONLY;
  bool dead_before_use() LOOP_ONLY;
  void on_write_failed() LOOP_ONLY;
  void read_on() LOOP_ONLY;
  void read_response() LOOP_ONLY;
  bool feed(std::string_view bytes) LOOP_ONLY;
  void on_head() LOOP_ONLY;
  http::ReplyRules reply_rules() const LOOP_ONLY;
  bool flush_reply() LOOP_ONLY;
  void on_response_end() LOOP_ONLY;
  void end_lease() LOOP_ONLY;
  void on_upstream_end(const net::IoResult& io) LOOP_ONLY;
  void on_upstream_broken(Fault fault, bool connection_ended) LOOP_ONLY;
  void switch_protocols(std::string_view rest) LOOP_ONLY;
  void open_tunnel() LOOP_ONLY;
  void relay_tunnel() LOOP_ONLY;
  bool tunnel_over() const LOOP_ONLY;
  void end_tunnel() LOOP_ONLY;
  void resume_client() LOOP_ONLY;
  void leave_line() LOOP_ONLY;

  // Ends.
  void reply(const Fault& fault) LOOP_ONLY;
  void break_off(Fault fault) LOOP_ONLY;
  void flush_what_came() LOOP_ONLY;
  void give_back(pool::Closed cause) LOOP_ONLY;
  void rest(ClientNext next) LOOP_ONLY;
  void enter(ExchangeEvent event) LOOP_ONLY;
  bool bodyless() const;
  bool begun() const LOOP_ONLY { return facts_.began != Instant{}; }

  // Deadlines.
  void touch() LOOP_ONLY;  // a byte moved, or the phase changed
  void on_deadline();
  Fault deadline_fault(bool total) const LOOP_ONLY;

  void run() override LOOP_ONLY;  // exec::Deferred: read on in the next turn
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view name, std::string_view value) override;

  Connection& upstream() LOOP_ONLY { return static_cast<Connection&>(*lease_); }

  Worker& worker_;
  Client* client_ = nullptr;
  ExchangeState state_ = ExchangeState::resting;
  http::RequestHead request_;
  http::ResponseHead response_;
  http::ResponseReader reader_;
  pool::Lease lease_;
  Upload upload_;
  std::string host_;       // value of Host for the origin
  std::string_view path_;  // in request_.target
  http::Fields trailers_;  // of the response
  http::Framing reply_framing_ = http::Framing::none;
  bool connect_ = false;       // CONNECT: a tunnel from the start
  bool upgrade_ = false;       // asked for, and passed on
  bool head_done_ = false;     // final response head seen
  bool close_client_ = false;  // the reply says Connection: close
  bool leftover_ = false;      // bytes behind the response: the wire is not clean
  bool write_failed_ = false;  // the origin does not read any more
  bool over_limit_ = false;    // the body passed max_body
  bool private_ = false;       // the connection authenticated this client: never another's
  bool upstream_eof_ = false;  // tunnel: the origin said FIN
  bool tunnel_client_eof_ = false;
  int max_forwards_ = -1;
  std::uint32_t idempotent_retries_ = 0, proven_replays_ = 0;
  Instant waiting_since_{};
  exec::Timer timer_;
  Instant total_deadline_ = kNever;
  Instant wait_deadline_ = kNever;
  ExchangeFacts facts_;
};

}  // namespace carpool::proxy
