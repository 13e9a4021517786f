// Exchange: one request and its response, from the head to the last byte; a run-to-completion state machine whose table
// is transition_table.h. Exchanges are pooled per loop and freed only with the pool, so a late grant always points to
// live memory; the ticket shows whether it is still current.
//
// An exchange is independent of the protocols: the client is a ClientStream, the origin an UpstreamStream (HTTP/1.1, or
// a stream of HTTP/2, on either side). Callers: the ClientStream (request side), the UpstreamStream (response side),
// the Destination (lease), and the exchange's own timer. The last step of an exchange notifies its client stream, once,
// of the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "exec/loop.h"
#include "pool/destination/lease.h"
#include "pool/queue/borrower.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange_values.h"
#include "proxy/exchange/hedge_owner.h"
#include "proxy/exchange/request_body.h"
#include "proxy/exchange/transition_table.h"
#include "proxy/http/forward.h"

namespace carpool::metrics {
enum class Egress : std::uint8_t;
enum class Hedge : std::uint8_t;
}  // namespace carpool::metrics

namespace carpool::proxy {

struct BorrowerInfo;
struct DeadlineRow;
struct ExchangeContext;
class HedgedAttempt;
struct OriginRuntime;
class UpstreamStreams;

// ExchangeInfo: the data of an exchange for metrics and the access log. Small members stand together: thousands of
// clients that are sending a head have one each.
struct ExchangeInfo {
  OriginRuntime* origin = nullptr;
  Instant began{}, leased{}, head_received{};
  std::uint64_t bytes_in = 0, bytes_out = 0;  // of the bodies
  std::uint64_t connection = 0;
  Duration waited{};  // time spent waiting for a connection, granted or not
  std::uint32_t uses_before = 0;
  std::uint32_t retries = 0;
  std::uint16_t status = 0;  // for a local reply to a gRPC client: the status that another client would get
  std::optional<std::uint16_t> grpc_status;
  std::optional<pool::OpenCause> opened;  // set if the connection was opened for this exchange
  std::optional<metrics::Egress> egress;  // decision of the egress rules; empty if they were not evaluated
  std::optional<RetryReason> retried;     // reason for the last retry
  std::optional<metrics::Hedge> hedge;    // result of the last hedged attempt
  bool upstream_h2 = false;               // protocol of the connection
  bool asked_pool = false;
  std::string_view upstream_tls;  // TLS version of the connection; empty for plain text
  std::string_view unrepeated;    // why a failed attempt was not repeated; empty if there was none
  std::optional<Fault> fault;
};

class Exchange final : public pool::Borrower, public ListHook<struct ExchangeTag>, private HedgeOwner {
 public:
  explicit Exchange(const ExchangeContext& context);
  ~Exchange();

  // ---- the client stream's calls, in the order of a request ----
  http::RequestHead& request() LOOP_ONLY { return request_; }
  const http::RequestHead& request() const LOOP_ONLY { return request_; }
  void begin(ClientStream& client_stream) LOOP_ONLY;  // call when the head is complete
  void on_request_body(std::string_view bytes) LOOP_ONLY;
  void on_request_trailer(std::string_view name, std::string_view value, bool sensitive) LOOP_ONLY;
  void on_request_end() LOOP_ONLY;
  void pump() LOOP_ONLY;               // sends the bytes of this event upstream
  bool wants_input() const LOOP_ONLY;  // returns true if the client may be read now
  // Reports that the framing of the body is malformed, or that the client ended inside it.
  void on_request_broken(Fault fault) LOOP_ONLY { fail(std::move(fault)); }
  void on_client_progress() LOOP_ONLY { arm_deadline(); }  // the client reads its response
  void on_client_writable() LOOP_ONLY;                     // its write queue drained below the high watermark
  void on_client_gone() LOOP_ONLY;
  void on_token_changed() LOOP_ONLY;                          // while the exchange waits for a token
  void on_client_timed_out(std::string_view rule) LOOP_ONLY;  // like on_client_gone(), caused by this rule
  void note_stopping() LOOP_ONLY;  // the process cuts off the response; on_client_gone() follows
  // After 101 or CONNECT: raw bytes from the client, and its FIN.
  bool tunnelled() const LOOP_ONLY { return state_ == ExchangeState::tunnel; }
  void on_tunnel_bytes(std::string_view bytes) LOOP_ONLY;
  void on_tunnel_input_end() LOOP_ONLY;

  // Returns true if a part of the response was sent, so that the client's connection must not end as if it were
  // complete.
  bool response_incomplete() const { return state_ == ExchangeState::relaying || state_ == ExchangeState::tunnel; }
  // Releases large buffers. Must be called when the exchange is pooled.
  void release_buffers() LOOP_ONLY;
  ExchangeState state() const LOOP_ONLY { return state_; }
  const ExchangeInfo& info() const LOOP_ONLY { return info_; }
  std::string_view phase() const LOOP_ONLY;  // the current activity, for an operator

  // ---- the leak detector's calls ----
  bool holds_lease() const LOOP_ONLY { return attempt_.has_value(); }
  // Returns the leak's number in the LeakLog if this lease was reported, otherwise 0.
  std::uint64_t leak() const LOOP_ONLY { return attempt_ ? attempt_->leak : 0; }
  void mark_leaked(std::uint64_t number) LOOP_ONLY { attempt_->leak = number; }
  void end_leaked() LOOP_ONLY;                       // closes the connection, cause `leak`
  BorrowerInfo describe_borrower() const LOOP_ONLY;  // requires holds_lease()

  // ---- the pool's calls ----
  void on_lease(pool::Lease lease) override;
  void on_refused(Fault fault) override;
  std::uint64_t client() const override;

 private:
  // ---- the head (exchange.cc) ----
  bool may_forward(const http::Target& target) LOOP_ONLY;
  void reply_locally() LOOP_ONLY;
  bool forwards_upgrade() const LOOP_ONLY;
  bool waits_for_body() const LOOP_ONLY;
  bool bodyless() const {
    using enum http::Framing;
    return request_.framing == none || (request_.framing == length && request_.length == 0);
  }
  bool begun() const LOOP_ONLY { return info_.began != Instant{}; }
  // Returns true if no byte of the request is expected before its response. An extended CONNECT (RFC 8441) has no body
  // and does not end.
  bool all_received() const { return request_body_.ended() || !request_body_.expected(); }
  void enter(ExchangeEvent event) LOOP_ONLY;

  // ---- borrowing (exchange_borrow.cc); returns `over` if the body is not complete, the exchange waits for a
  // connection, or the request was answered ----
  AttemptState borrow_when_body_may_be_sent() LOOP_ONLY;
  AttemptState await_token_or_borrow() LOOP_ONLY;
  enum class Accepts : std::uint8_t { any_connection, new_connection };
  AttemptState borrow(Accepts accepts) LOOP_ONLY;
  pool::BorrowRequest borrow_request(Accepts accepts) LOOP_ONLY;
  AttemptState borrow_from_new_destination(Accepts accepts) LOOP_ONLY;
  void leave_replaced(pool::Lease lease) LOOP_ONLY;
  void continue_attempt() LOOP_ONLY;
  void resume_client() LOOP_ONLY;
  void leave_queue() LOOP_ONLY;  // cancels the place in the wait queue

  // ---- the token of the origin (exchange_authorize.cc) ----
  bool has_token() const LOOP_ONLY;
  bool finds_token() LOOP_ONLY;
  AttemptState await_token() LOOP_ONLY;
  std::optional<AttemptState> retry_unauthorized() LOOP_ONLY;

  // ---- sending the request (exchange_forward.cc) ----
  // `client`: the lease was that of a connection which authenticated this client earlier.
  enum class LeasedFrom : std::uint8_t { pool, client };
  AttemptState begin_attempt(pool::Lease lease, LeasedFrom from) LOOP_ONLY;
  StreamFailure unusable_failure() LOOP_ONLY;
  void expect_unsolicited(AttemptValues& attempt) LOOP_ONLY;
  std::optional<StreamFailure> unsolicited(const AttemptValues& attempt, const http::ResponseHead& head) LOOP_ONLY;
  std::optional<AttemptState> retry_unsolicited() LOOP_ONLY;
  void note_lease(Instant leased) LOOP_ONLY;
  void measure_body(RateRule rule) LOOP_ONLY;
  void measure_reader(Instant now) LOOP_ONLY;
  void on_slow_reader(std::string_view rule) LOOP_ONLY;
  // The clients of streamed bodies may wait for the response before they continue.
  RateRule rate_rule() const {
    return request_.framing == http::Framing::length ? RateRule::always : RateRule::if_wanted;
  }
  UpstreamStream& begin_on(UpstreamStreams& streams, const pool::Lease& lease) LOOP_ONLY;
  std::optional<Fault> send_request_head(AttemptValues& attempt) LOOP_ONLY;
  std::optional<Fault> set_fields(http::ForwardRules& rules, AttemptValues& attempt) LOOP_ONLY;
  void follow_reload() LOOP_ONLY;
  void use_origin(OriginRuntime& origin) LOOP_ONLY;
  UpstreamStream* upstream_stream() LOOP_ONLY { return attempt_ ? attempt_->upstream_stream : nullptr; }

  // ---- relaying the response (exchange_response.cc) ----
  bool in_order(bool part_in_order) LOOP_ONLY;
  bool head_in_order() LOOP_ONLY;
  void note_interim_head() LOOP_ONLY;
  void note_final_head() LOOP_ONLY;
  void note_authentication() LOOP_ONLY;
  bool keeps_connection() LOOP_ONLY;
  // Returns true if no part of the request is outstanding. After any other response, also 417, the client may send its
  // body, of which no byte may be parsed as a request: its connection ends.
  bool request_ended() const LOOP_ONLY { return request_body_.ended(); }
  AttemptState did_not_switch(std::string_view why) LOOP_ONLY;
  AttemptState parent_asks_for_credentials() LOOP_ONLY;
  bool flush_reply() LOOP_ONLY;
  void note_grpc_status() LOOP_ONLY;
  void complete_attempt() LOOP_ONLY;
  void give_lease_back(pool::Lease& lease, std::optional<pool::CloseCause> unclean) LOOP_ONLY;

  // ---- after a failed attempt (exchange_retry.cc) ----
  Repeatable request_repeatable() const LOOP_ONLY;
  RetryDecision decide_retry(AttemptResult result) LOOP_ONLY;
  void note_failed_attempt(const StreamFailure& failure, RetryOutcome outcome) LOOP_ONLY;
  void note_unrepeated(RetryOutcome outcome, AttemptResult result, Fault& fault) LOOP_ONLY;
  AttemptState cannot_be_sent(const Fault& fault) LOOP_ONLY;
  bool retry_misdirected() LOOP_ONLY;
  std::optional<AttemptState> retry_status() LOOP_ONLY;
  AttemptState drop_response(RetryReason reason) LOOP_ONLY;
  void retry_after_end() LOOP_ONLY;
  void on_late_attempt(Fault fault) LOOP_ONLY;
  bool retry_connect(const Fault& fault) LOOP_ONLY;
  void count_retry(RetryReason reason) LOOP_ONLY;
  void retry(RetryReason reason) LOOP_ONLY;

  // ---- the second attempt of a late request (exchange_hedge.cc) ----
  bool may_hedge() LOOP_ONLY;
  void hedge(RetryReason reason) LOOP_ONLY;
  bool continue_with_hedge() LOOP_ONLY;
  void borrow_for_hedge() LOOP_ONLY;
  bool yields_to_hedge() LOOP_ONLY;
  bool hedge_pending() const LOOP_ONLY;
  void end_hedge() LOOP_ONLY;
  void cancel_hedge() LOOP_ONLY;
  void note_hedge(metrics::Hedge result) LOOP_ONLY;
  bool send_hedged(AttemptValues& attempt, UpstreamStreams& streams) override LOOP_ONLY;
  bool crosses_hedge(const AttemptValues& attempt, const http::ResponseHead& head) override LOOP_ONLY;
  bool on_hedge_head(AttemptValues& attempt, const http::ResponseHead& head) override LOOP_ONLY;
  void on_hedge_failed() override LOOP_ONLY;

  // ---- the tunnel (exchange_tunnel.cc) ----
  bool switched_too_early() LOOP_ONLY;
  AttemptState open_tunnel() LOOP_ONLY;
  void enter_tunnel() LOOP_ONLY;
  bool tunnel_over() LOOP_ONLY;
  void end_tunnel() LOOP_ONLY;

  // ---- pauses requested by the origin (exchange_cool_down.cc) ----
  void record_response_in_pool(pool::Lease& lease, const http::ResponseHead& head, Instant leased) LOOP_ONLY;
  void follow_cool_down(pool::Lease& lease, const http::ResponseHead& head) LOOP_ONLY;
  bool begin_cool_down(pool::Destination& destination, Duration wait, std::uint16_t status) LOOP_ONLY;
  void pass_trial(pool::Lease& lease) LOOP_ONLY;
  void add_retry_after(Fault& fault) const LOOP_ONLY;

  // ---- the timer (exchange_timeout.cc) ----
  void arm_deadline() LOOP_ONLY;  // must be called when a byte moved or the phase changed
  void on_deadline();
  bool connection_wanted() const LOOP_ONLY;
  bool awaits_continue() const LOOP_ONLY;
  Awaited awaited() const LOOP_ONLY;
  Fault fault_of(const DeadlineRow& row) const LOOP_ONLY;

  // ---- its span (exchange_trace.cc) ----
  void begin_trace() LOOP_ONLY;
  void trace_lease() LOOP_ONLY;
  void record_span(Instant now) LOOP_ONLY;

  // ---- the end (exchange_end.cc, exchange_leak.cc, exchange_record.cc) ----
  void fail(Fault fault) LOOP_ONLY;
  void reply(const Fault& fault) LOOP_ONLY;
  AttemptState close_without_response() LOOP_ONLY;
  void abort_response(Fault fault) LOOP_ONLY;
  void abandon_attempt(pool::CloseCause cause) LOOP_ONLY;
  void end_attempt() LOOP_ONLY;
  void finish(AfterExchange next) LOOP_ONLY;
  void close_leak() LOOP_ONLY;
  void record() LOOP_ONLY;  // in the metrics and the access log

  // ---- UpstreamStreamHandler: the response ----
  bool wants_response() const override LOOP_ONLY;
  std::size_t writable_bytes() const override LOOP_ONLY { return client_stream_->writable_bytes(); }
  bool splices_body() const override LOOP_ONLY;
  AttemptState splice_body(net::Transport& from, std::size_t max_bytes, net::IoResult& io) override LOOP_ONLY;
  bool may_buffer_more() const override LOOP_ONLY { return client_stream_->may_buffer_more(); }
  AttemptState on_response_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view name, std::string_view value, bool sensitive) override;
  AttemptState on_read_complete() override LOOP_ONLY;
  AttemptState on_response_end() override LOOP_ONLY;
  AttemptState on_failure(StreamFailure failure) override LOOP_ONLY;
  AttemptState on_writable() override LOOP_ONLY;
  AttemptState on_switched(std::string_view rest) override LOOP_ONLY;
  AttemptState on_tunnel_eof() override LOOP_ONLY;

  const ExchangeContext& context_;
  ClientStream* client_stream_ = nullptr;
  ExchangeState state_ = ExchangeState::idle;
  http::RequestHead request_;
  const std::unique_ptr<UpstreamStreams> streams_;  // streams on connections of this loop
  http::ResponseHead* response_;                    // head of the last attempt, in streams_ or in hedge_
  std::unique_ptr<HedgedAttempt> hedge_;            // created by the first request that needs it
  std::optional<AttemptValues> attempt_;
  std::optional<RequestValues> request_values_;  // from begin() to finish()
  std::string host_buffer_;                      // memory for the next request
  std::string user_;                             // user of the request; empty if no credentials were required
  RequestBody request_body_;
  exec::Timer timer_;
  ExchangeInfo info_;
  http::Fields trailers_buffer_;  // memory for the next attempt that has trailers
};

}  // namespace carpool::proxy
