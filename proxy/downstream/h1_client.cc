#include "proxy/downstream/h1_client.h"

#include <sys/socket.h>

#include <utility>

#include "exec/read_buffer.h"
#include "proxy/downstream/client_owner.h"
#include "proxy/downstream/listener.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/net/peer_credentials.h"

namespace carpool::proxy {

namespace {
http::Limits limits_of(const config::Listen& listen) {
  return {static_cast<std::uint32_t>(listen.max_header_bytes), listen.max_headers,
          static_cast<std::uint32_t>(listen.max_target)};
}
}  // namespace

Client::Client(const ExchangeContext& context, ClientOwner& clients, Listener& listener,
               std::unique_ptr<net::Transport> transport, std::string peer)
    : Requester(listener.point()),
      context_(context),
      clients_(clients),
      unwelcome_(context.overload.sheds(Shedding::new_clients)),
      listener_(listener),
      listen_(listener.settings()),
      transport_(std::move(transport)),
      reader_(limits_of(listen_)),
      timer_(exec::Timer::bind<&Client::on_timer>(context.loop, *this)),
      peer_(std::move(peer)) {}

std::uint64_t Client::identity() const {
  if (identity_ == 0) identity_ = identity_of(transport_->fd());
  return identity_;
}

Client::~Client() = default;

Status Client::start() {
  Result<exec::WatchKey> key = context_.loop.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  arm_timer();
  return Done{};
}

// ---- turns ----

void Client::on_ready(exec::Ready ready) {
  transport_->note(ready);
  advance();
}

void Client::run() {
  advance();
}

void Client::run_soon() {
  if (fate_ != Fate::closed && !advancing_ && !exec::Deferred::linked()) context_.loop.defer(*this);
}

void Client::advance() {
  if (fate_ == Fate::closed) return;
  advancing_ = true;
  std::size_t turns = 16;  // a client that pipelines for ever lets the others have their turn
  while (step()) {
    if (--turns == 0) {
      advancing_ = false;
      return run_soon();
    }
  }
  if (fate_ == Fate::open) watch_half_close();
  advancing_ = false;
  if (fate_ == Fate::closed) return clients_.destroy_later(*this);
  arm_timer();
}

// One step of this connection; false: nothing more to do until the next event.
bool Client::step() {
  if (fate_ == Fate::closed) return false;
  if (!outbox_.empty() && !flush_waiting()) return false;
  if (fate_ == Fate::lingering) return discard_input();
  if (close_when_sent_) {
    if (outbox_.empty()) end_gracefully();
    return fate_ == Fate::lingering;
  }
  if (eof_ && pending_.empty()) {
    if (transport_->hangup_seen()) notice_hangup();  // a reset may follow the FIN
    if (fate_ == Fate::closed) return false;
    on_eof();
    return fate_ == Fate::open && close_when_sent_;
  }
  if (may_read()) return read_some();
  if (transport_->hangup_seen()) notice_hangup();
  return false;
}

bool Client::flush_waiting() {
  const std::size_t before = outbox_.size();
  const std::uint64_t taken = outbox_.taken();
  if (outbox_.flush(*transport_) == Outbox::Sent::failed) {
    lost();
    return false;
  }
  if (outbox_.empty() && shut_when_sent_) {
    shut_when_sent_ = false;
    transport_->shut_write();
  }
  if (outbox_.taken() != taken) taken_at_ = context_.loop.now();
  if (exchange_ != nullptr && begun_ && outbox_.taken() != taken) exchange_->on_client_progress();
  if (exchange_ != nullptr && begun_ && before >= kHighMark && outbox_.size() < kHighMark)
    exchange_->on_client_writable();
  return fate_ != Fate::closed;
}

bool Client::may_read() const {
  if (exchange_ == nullptr || !begun_)
    return outbox_.size() < kHighMark;  // the next request, once there is room to answer
  if (!exchange_->tunnelled() && request_complete_) return false;
  return exchange_->wants_input();
}

bool Client::read_some() {
  if (!pending_.empty()) {
    const std::string bytes = std::exchange(pending_, {});
    return take(bytes);
  }
  if (eof_ || !transport_->maybe_readable()) return false;
  const exec::ReadBuffer buffer(context_.loop);
  const net::IoResult io = transport_->read(buffer.span());
  switch (io.io) {
    case net::Io::ok:
      return take(buffer.view(io.bytes));
    case net::Io::would_block:
      return false;
    case net::Io::eof:
      eof_ = true;
      return true;
    case net::Io::failed:
      lost();
      return false;
  }
  return false;
}

// The client is not to be read now, but its socket says that it left. FIN is only a half-close: the client may still
// wait for its answer, for as long as listen.half_close allows.
void Client::notice_hangup() {
  while (!eof_ && pending_.size() < kHighMark && transport_->maybe_readable()) {
    const exec::ReadBuffer buffer(context_.loop);
    const net::IoResult io = transport_->read(buffer.span());
    if (io.io == net::Io::would_block) break;
    if (io.io == net::Io::failed) return lost();
    if (io.io == net::Io::eof) eof_ = true;
    pending_.append(buffer.view(io.bytes));
  }
  // Behind a FIN, or behind more than may be read now, only the socket itself knows of a reset.
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(transport_->fd(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error != 0) lost();
}

}  // namespace carpool::proxy
