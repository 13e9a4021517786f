#include "proxy/downstream/h1_client.h"

#include <utility>

#include "exec/read_buffer.h"
#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/net/io_limits.h"
#include "proxy/upstream/private_connection.h"

namespace carpool::proxy {

namespace {
http::Limits limits_of(const config::Listen& listen) {
  return {static_cast<std::uint32_t>(listen.max_header_bytes), listen.max_headers,
          static_cast<std::uint32_t>(listen.max_target)};
}
}  // namespace

H1Client::H1Client(const ExchangeContext& context, ClientOwner& clients, Listener& listener, const ListenPoint& point,
                   std::unique_ptr<net::Transport> transport, std::string_view peer)
    : ClientStream(point),
      context_(context),
      clients_(clients),
      listener_(listener),
      listen_(point.settings()),
      transport_(std::move(transport)),
      reader_(limits_of(listen_)),
      timer_(exec::Timer::bind<&H1Client::on_timer>(context.loop, *this)),
      peer_(peer),
      tls_(transport_->security().version.data()),
      tls_size_(static_cast<std::uint8_t>(transport_->security().version.size())),
      accepted_while_shedding_(context.overload.is_shedding(ShedLevel::new_clients)) {
  static_assert(sizeof(H1Client) <= 496, "see docs/benchmarks.md: each idle client has one");
}

std::uint64_t H1Client::fairness_key() const {
  exec::assume_on_loop();
  return identity_.key(context_, listen_, transport_->fd(), peer_.known());
}

H1Client::~H1Client() = default;

std::string_view H1Client::peer() const {
  return peer_.name(transport_->fd());
}

Status H1Client::start() {
  Result<exec::WatchKey> key = context_.loop.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  arm_timer();
  return Done{};
}

// ---- event loop turns ----

void H1Client::on_ready(exec::Ready ready) {
  transport_->on_readiness(ready);
  advance();
}

void H1Client::run() {
  advance();
}

void H1Client::run_soon() {
  if (!over() && !advancing_ && !exec::Deferred::linked()) context_.loop.defer(*this);
}

void H1Client::advance() {
  if (over()) return;
  constexpr std::uint8_t kTurnSteps = 16;
  advancing_ = true;
  left_ = kTurnSteps;  // a client that pipelines endlessly must not starve others
  while (step()) {
    if (left_ == 0 || --left_ == 0) {
      advancing_ = false;
      return run_soon();
    }
  }
  if (state_ == State::open) watch_half_close();
  advancing_ = false;
  if (over()) return clients_.destroy_later(*this);
  arm_timer();
}

// Runs one step of this connection; returns false if nothing remains to do until the next event.
bool H1Client::step() {
  if (over()) return false;
  if (!write_queue_.empty() && !flush_waiting()) return false;
  if (lingers()) return discard_input();
  if (closes_when_sent()) {
    if (write_queue_.empty()) end_gracefully();
    return lingers();
  }
  if (fin_ != Fin::none && pending_ == nullptr) {
    // A reset may follow the FIN. A client without a request is closed in any case.
    if (transport_->hangup_seen() && exchange_ != nullptr) notice_hangup();
    if (over()) return false;
    on_eof();
    return closes_when_sent();
  }
  if (may_read()) return read_some();
  if (transport_->hangup_seen()) notice_hangup();
  return false;
}

bool H1Client::flush_waiting() {
  const std::size_t before = write_queue_.size();
  const std::uint64_t written = write_queue_.bytes_written();
  if (write_queue_.flush(*transport_) == WriteQueue::Sent::failed) {
    lost();
    return false;
  }
  if (write_queue_.empty() && shut_after_flush_) {
    shut_after_flush_ = false;
    transport_->shut_write();
  }
  if (write_queue_.bytes_written() != written) progress_at_ = context_.loop.now();
  if (exchange_runs() && write_queue_.bytes_written() != written) exchange_->on_client_progress();
  if (exchange_runs() && before >= kHighWatermark && write_queue_.size() < kHighWatermark)
    exchange_->on_client_writable();
  return !over();
}

bool H1Client::may_read() const {
  // the next request is parsed only when its response can be written
  if (!exchange_runs()) return write_queue_.size() < kHighWatermark;
  if (request_state_ == RequestState::complete && !exchange_->tunnelled()) return false;
  return exchange_->wants_input();
}

bool H1Client::read_some() {
  if (pending_ != nullptr) {
    const std::unique_ptr<const std::string> bytes = std::move(pending_);
    return parse(*bytes);
  }
  if (fin_ != Fin::none || !transport_->maybe_readable()) return false;
  const exec::ReadBuffer buffer(context_.loop);
  const net::IoResult io = transport_->read(buffer.span());
  switch (io.io) {
    case net::Io::ok:
      return parse(buffer.view(io.bytes));
    case net::Io::would_block:
      return false;
    case net::Io::eof:
      fin_ = Fin::received;
      return true;
    case net::Io::failed:
      lost();
      return false;
  }
  return false;
}

// Reads bytes, or the end of the connection, for a later step.
net::Io H1Client::read_ahead() {
  const exec::ReadBuffer buffer(context_.loop);
  const net::IoResult io = transport_->read(buffer.span());
  if (io.io == net::Io::eof && fin_ == Fin::none) fin_ = Fin::received;
  if (io.io == net::Io::failed) lost();
  if (io.io != net::Io::ok) return io.io;
  if (pending_ == nullptr) pending_ = std::make_unique<std::string>();
  pending_->append(buffer.view(io.bytes));
  return io.io;
}

// Called if the socket reports a hang-up while the client must not be read. A FIN is only a half-close: the client may
// still wait for its response, for as long as listen.half_close allows.
void H1Client::notice_hangup() {
  while (fin_ == Fin::none && (pending_ == nullptr || pending_->size() < kHighWatermark) &&
         transport_->maybe_readable()) {
    const net::Io last = read_ahead();
    if (last == net::Io::failed) return;
    if (last == net::Io::would_block) break;
  }
  // After a FIN, or after more data than may be read now, no read reveals a reset.
  if (transport_->take_error() != 0) lost();
}

}  // namespace carpool::proxy
