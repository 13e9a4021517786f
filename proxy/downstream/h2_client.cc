#include "proxy/downstream/h2_client.h"

#include <algorithm>
#include <span>
#include <utility>

#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/connect_interceptor.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/h2/types.h"
#include "proxy/net/read_with_budget.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kHeadsRead = 256;                 // bytes per read while requests are expected
constexpr std::size_t kPull = std::size_t{128} * 1024;  // bytes of frames generated per write
// High watermark of all streams of one client together.
constexpr std::size_t kClientHighWatermark = std::size_t{512} * 1024;
constexpr std::size_t kFewStreams = 16;    // up to this number the buffer stays below kClientHighWatermark
constexpr std::uint32_t kMaxUnpumped = 8;  // each may hold a write batch of the loop
// Receive windows of a stream and of the session. The session's never blocks a stream: an upload that waits for its
// origin, or for a connection that another upload of this client has, stops only its own stream.
constexpr std::uint32_t kStreamWindow = 65535;
constexpr std::uint32_t kWindow = 512 * 1024;
constexpr std::uint32_t kMaxStreams = http::H2Options{}.max_streams;  // also counts tunnels that outlive their streams

http::H2Options options_of(const config::Listen& listen) {
  http::H2Options options;
  options.head = {static_cast<std::uint32_t>(listen.max_header_bytes), listen.max_headers,
                  static_cast<std::uint32_t>(listen.max_target)};
  options.stream_window = kStreamWindow;
  options.window = kWindow;
  options.shared_window_is_free = true;
  return options;
}
}  // namespace

H2Client::H2Client(const ExchangeContext& context, ClientOwner& clients, Listener& listener, const ListenPoint& point,
                   std::unique_ptr<net::Transport> transport, std::string_view peer)
    : context_(context),
      clients_(clients),
      pacer_(clients.pacer()),
      accepted_while_shedding_(context.overload.is_shedding(ShedLevel::new_clients)),
      tls_(transport->security().version),
      listener_(listener),
      point_(point),
      listen_(point.settings()),
      transport_(std::move(transport)),
      session_(http::H2Role::server, options_of(listen_), *this),
      timer_(exec::Timer::bind<&H2Client::on_timer>(context.loop, *this)),
      peer_(peer) {}

H2Client::~H2Client() = default;

std::uint64_t H2Client::fairness_key() const {
  exec::assume_on_loop();
  return identity_.key(context_, listen_, transport_->fd(), peer_.known());
}

std::string_view H2Client::peer() const {
  return peer_.name(transport_->fd());
}

ConnectInterceptor& H2Client::interceptor() const {
  return clients_.interceptor();
}

Status H2Client::start(std::string_view preface, std::string_view bytes) {
  transport_->forget_readiness();
  Result<exec::WatchKey> key = context_.loop.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  progress_at_ = context_.loop.now();
  advancing_ = true;
  turn_requests_ = pacer_.allowance_when_ready();
  if (!preface.empty()) parse(preface);
  if (!bytes.empty()) parse(bytes);
  advancing_ = false;
  flush_soon();
  return Done{};
}

// ---- event loop turns ----

void H2Client::on_ready(exec::Ready ready) {
  transport_->on_readiness(ready);
  advance(pacer_.allowance_when_ready());
}

void H2Client::run() {
  advance(pacer_.allowance());
}

void H2Client::continue_requests() {
  advance(pacer_.allowance());
}

void H2Client::flush_soon() {
  if (state_ != State::closed && !advancing_ && !exec::Deferred::linked()) context_.loop.defer(*this);
}

void H2Client::advance(std::uint32_t requests) {
  if (state_ == State::closed) return;
  advancing_ = true;
  turn_requests_ = requests;
  if (state_ == State::lingering) {
    discard_input();
  } else {
    read_and_write();
    if (state_ == State::open) close_if_done();
  }
  advancing_ = false;
  if (state_ == State::closed) return destroy_when_unused();
  arm_timer();
}

bool H2Client::may_read() const {
  return transport_->maybe_readable() && state_ == State::open && write_queue_.size() < kHighWatermark &&
         !session_.over();
}

// Readiness is edge-triggered and nothing is deferred here. Therefore this call also processes input that had to wait
// for pending output, and requests to be resumed after a write. The rest of a large burst of requests waits until other
// clients have been served.
void H2Client::read_and_write() {
  std::size_t budget = kTurnBytes;
  std::size_t write_budget = kTurnBytes;
  do {
    read_all(budget);
    if (state_ == State::open && !write_all(write_budget)) {
      note_unused();
      close();
    }
  } while (turn_requests_ != 0 && ((budget != 0 && may_read()) || may_continue()));
  if (!may_read() && !may_continue()) return;
  if (turn_requests_ == 0) return pacer_.wait(*this);
  if (!exec::Deferred::linked()) context_.loop.defer(*this);
}

bool H2Client::may_continue() const {
  return state_ == State::open && !todo_.empty();
}

void H2Client::read_all(std::size_t& budget) {
  const net::ReadOutcome outcome = net::read_with_budget(
      context_.loop, *transport_, budget, [this]() LOOP_ONLY { return turn_requests_ != 0 && may_read(); },
      [this] { return expects_heads_ ? kHeadsRead : SIZE_MAX; },
      [this](std::string_view bytes) LOOP_ONLY {
        expects_heads_ = bytes.size() < kHeadsRead;  // false in the middle of a body
        parse(bytes);
        return true;
      });
  if (outcome.end == net::ReadEnd::closed) {  // also for a FIN: HTTP/2 has no half-closed connections
    note_unused();
    return close();
  }
  // Dispatches the requests that began in this turn and were not reset within it.
  continue_streams();
}

// Reports that the client has sent bytes.
void H2Client::note_use() {
  if (!std::exchange(used_, true) && interception() != nullptr) interceptor().on_use(*interception());
}

// Reports that the client has ended the connection.
void H2Client::note_unused() {
  if (!used_ && interception() != nullptr) interceptor().on_unused(*interception());
}

void H2Client::parse(std::string_view bytes) {
  note_use();
  static_cast<void>(session_.receive(bytes, context_.loop.now()));  // on a Fault, over() is true after its GOAWAY
  continue_streams();
}

void H2Client::continue_streams() {
  for (; turn_requests_ != 0 && !todo_.empty(); --turn_requests_) {
    todo_.pop_front().continue_stream();
    pacer_.note_begun();
  }
  pump_all();
}

void H2Client::pump_soon(H2ClientStream& request) {
  if (request.ListHook<H2PumpTag>::linked()) return;
  if (unpumped_count_ == kMaxUnpumped) pump_all();
  unpumped_.push_back(request);
  ++unpumped_count_;
}

void H2Client::pump_all() {
  while (!unpumped_.empty()) {
    --unpumped_count_;
    unpumped_.pop_front().pump();
  }
}

void H2Client::forget_pump(H2ClientStream& request) {
  if (!request.ListHook<H2PumpTag>::linked()) return;
  request.ListHook<H2PumpTag>::unlink();
  --unpumped_count_;
}

void H2Client::continue_soon(H2ClientStream& request) {
  if (!request.ListHook<H2TodoTag>::linked()) todo_.push_back(request);
  flush_soon();
}

bool H2Client::over_high_watermark() const {
  return session_.backlog() >= kClientHighWatermark;
}

bool H2Client::may_buffer_more() const {
  return session_.streams() <= kFewStreams && !over_high_watermark();
}

void H2Client::note_progress() {
  progress_at_ = context_.loop.now();
}

// A client that reads makes progress, however few bytes at a time, also after the end of their exchange. Replies to
// its control frames are not progress: they prove nothing about its responses.
bool H2Client::flush_waiting() {
  const std::uint64_t before = write_queue_.bytes_written();
  if (write_queue_.flush(*transport_) == WriteQueue::Sent::failed) return false;
  if (!message_waits_ || write_queue_.bytes_written() == before) return true;
  note_progress();
  for (const auto& request : requests_) request->note_read_by_client(pulls_);
  return true;
}

// Writes the output of this turn in as few system calls as the socket allows. Each pull lets exchanges read more from
// their origins, so a fast client would otherwise keep the loop for a whole response. Returns false if the client is
// gone.
bool H2Client::write_all(std::size_t& budget) {
  if (!write_queue_.empty() && !flush_waiting()) return false;
  while (write_queue_.empty() && session_.wants_pull()) {
    if (budget == 0) {
      if (!exec::Deferred::linked()) context_.loop.defer(*this);
      return true;
    }
    BatchLease out = context_.buffers.lease_batch(write_queue_, *transport_);
    const std::uint64_t framed = session_.messages_framed();
    ++pulls_;
    session_.pull(out.text(), kPull, context_.loop.now());
    message_waits_ = session_.messages_framed() != framed;
    if (message_waits_) note_progress();
    if (out.empty()) return true;
    budget -= std::min(budget, out.text().size());
    if (out.send() == WriteQueue::Sent::failed) return false;
  }
  return true;
}

// ---- requests ----

H2ClientStream& H2Client::acquire_request() {
  ++running_;
  if (!free_.empty()) return free_.pop_front();
  requests_.push_back(std::make_unique<H2ClientStream>(*this, point_));
  return *requests_.back();
}

void H2Client::recycle(H2ClientStream& request) {
  note_progress();
  --running_;
  free_.push_front(request);
  if (state_ == State::closed && !advancing_) destroy_when_unused();
}

// Returns true if a new stream is one too many beside the tunnels that outlive theirs, which the session does not
// count.
bool H2Client::exceeds_streams() const {
  return session_.streams() + outliving_ > kMaxStreams;
}

http::H2StreamUser* H2Client::on_request(http::H2Stream& stream, http::RequestHead& head) {
  exec::assume_on_loop();
  if (!context_.keeps_clients()) drain();
  if (exceeds_streams()) {
    session_.reset(stream, http::H2Error::refused_stream);
    return nullptr;
  }
  H2ClientStream& request = acquire_request();
  Exchange& exchange = context_.exchanges.acquire();
  exchange.request() = std::move(head);
  request.open(stream, exchange);
  todo_.push_back(request);
  expects_heads_ = true;
  note_progress();
  return &request;
}

void H2Client::on_refused_head(http::H2Stream& stream, FaultKind kind) {
  exec::assume_on_loop();
  acquire_request().refuse(stream, {kind, Side::client, std::string(http::h2_refused_head_reason(kind))});
}

void H2Client::on_malformed_head(const char* violation) {
  exec::assume_on_loop();
  record_malformed(violation);
}

void H2Client::on_stream_refused() {
  exec::assume_on_loop();
  context_.stats.count(metrics::ClientLimit::streams);
}

void H2Client::record_malformed(std::string_view violation) {
  const Fault fault = violation_of_client(violation);
  context_.stats.record_refused(peer(), fault, http::fault_status(fault.kind).status);
}

}  // namespace carpool::proxy
