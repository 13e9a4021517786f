#include "proxy/downstream/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "proxy/downstream/listener.h"
#include "proxy/http/fault_reply.h"
#include "proxy/http/h2_types.h"
#include "proxy/peer.h"
#include "proxy/worker.h"

namespace carpool::proxy {

namespace {
http::Limits limits_of(const config::Listen& listen) {
  return {static_cast<std::uint32_t>(listen.max_header_bytes), listen.max_headers,
          static_cast<std::uint32_t>(listen.max_target)};
}
}  // namespace

Client::Client(Worker& worker, Listener& listener, std::unique_ptr<net::Transport> transport, std::string peer)
    : Requester(listener),
      worker_(worker),
      unwelcome_(worker.sheds(Shedding::new_clients)),
      listen_(listener.settings()),
      transport_(std::move(transport)),
      reader_(limits_of(listen_)),
      timer_(exec::Timer::bind<&Client::on_timer>(worker.loop(), *this)),
      peer_(std::move(peer)) {}

std::uint64_t Client::identity() const {
  if (identity_ == 0) identity_ = identity_of(transport_->fd());
  return identity_;
}

Client::~Client() = default;

Status Client::start() {
  Result<exec::WatchKey> key = worker_.loop().watch(transport_->fd(), *this);
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
  if (fate_ != Fate::closed && !advancing_ && !exec::Deferred::linked()) worker_.loop().defer(*this);
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
  advancing_ = false;
  if (fate_ == Fate::closed) return worker_.bury(*this);
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
  const std::span<char> scratch = worker_.loop().scratch();
  const net::IoResult io = transport_->read(scratch);
  switch (io.io) {
    case net::Io::ok:
      return take({scratch.data(), io.bytes});
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

// The client is not to be read now, but its socket says that it left. FIN is only a half-close: it still gets its
// answer.
void Client::notice_hangup() {
  while (!eof_ && pending_.size() < kHighMark && transport_->maybe_readable()) {
    const std::span<char> scratch = worker_.loop().scratch();
    const net::IoResult io = transport_->read(scratch);
    if (io.io == net::Io::would_block) break;
    if (io.io == net::Io::failed) return lost();
    if (io.io == net::Io::eof) eof_ = true;
    pending_.append(scratch.data(), io.bytes);
  }
  // Behind a FIN, or behind more than may be read now, only the socket itself knows of a reset.
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(transport_->fd(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error != 0) lost();
}

// ---- requests ----

// Feeds what was read; keeps what may not be used yet. False: no further step now.
bool Client::take(std::string_view bytes) {
  if (preface_ != kNoPreface) return take_preface(bytes);
  std::size_t used = 0;
  while (used < bytes.size() && fate_ == Fate::open && !close_when_sent_ && may_read()) {
    if (exchange_ != nullptr && exchange_->tunnelled()) {
      exchange_->on_tunnel_bytes(bytes.substr(used));
      used = bytes.size();
      break;
    }
    used += feed(bytes.substr(used));
  }
  if (fate_ != Fate::open || close_when_sent_) return fate_ != Fate::closed;
  if (used < bytes.size()) pending_.assign(bytes.substr(used));
  // One write for the head and all of the body that came with it.
  if (exchange_ != nullptr && begun_) exchange_->pump();
  return fate_ == Fate::open && (used == bytes.size() || may_read());
}

// HTTP/2 with prior knowledge (RFC 9113 §3.3), or the beginning of a request after all.
bool Client::take_preface(std::string_view bytes) {
  const std::string_view expected = http::kH2Preface.substr(preface_);
  const auto [at, end] = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
  const auto same = static_cast<std::size_t>(at - bytes.begin());
  if (end == expected.end()) {
    hand_over(bytes.substr(same));
    return false;
  }
  if (same == bytes.size()) {
    preface_ = static_cast<std::uint8_t>(preface_ + same);
    return true;
  }
  const std::size_t before = std::exchange(preface_, kNoPreface);
  if (before == 0) return take(bytes);
  return take(std::string(http::kH2Preface.substr(0, before)).append(bytes));
}

void Client::hand_over(std::string_view bytes) {
  fate_ = Fate::closed;
  handed_over_ = true;
  timer_.disarm();
  exec::Deferred::unlink();
  worker_.loop().unwatch(transport_->fd(), key_);
  worker_.promote(listener_, std::move(transport_), peer_, bytes);
}

std::size_t Client::feed(std::string_view bytes) {
  if (exchange_ == nullptr) {
    exchange_ = &worker_.take_exchange();
    begun_ = request_complete_ = false;
  }
  std::size_t used = 0;
  for (;;) {
    const Result<http::Fed> fed = reader_.feed(bytes.substr(used), exchange_->request(), *this);
    if (!fed) {
      refuse(fed.fault());
      return used;
    }
    used += fed->taken;
    if (!on_fed(*fed)) return used;
  }
}

// What the reader came to. True: feed on.
bool Client::on_fed(const http::Fed& fed) {
  switch (fed.progress) {
    case http::Progress::need_more:
    case http::Progress::upgraded:
      return false;
    case http::Progress::head:
      begun_ = true;
      exchange_->begin(*this);
      if (exchange_ != nullptr && exchange_->tunnelled()) {
        request_complete_ = true;  // CONNECT was served at once: what follows is the tunnel's
        return false;
      }
      if (exchange_ != nullptr) return true;
      reader_.reset();  // answered already; it goes on only where no body follows
      return false;
    case http::Progress::message:
      reader_.reset();
      request_complete_ = true;
      exchange_->on_request_end();
      return false;
  }
  return false;
}

void Client::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  if (exchange_ != nullptr) exchange_->on_request_body(bytes);
}

void Client::on_trailer(std::string_view name, std::string_view value) {
  exec::assume_on_loop();
  if (exchange_ != nullptr) exchange_->on_request_trailer(name, value);
}

// The bytes are not HTTP, or pass a limit.
void Client::refuse(const Fault& fault) {
  if (begun_) return exchange_->on_request_broken(fault);
  Gather& out = worker_.to_client();
  out.clear();
  const std::uint16_t status =
      http::write_fault_reply(out.text(), fault, http::Version::http11, true, false, worker_.pseudonym());
  worker_.record_refused(*this, fault, status);
  // None yet: what came so far may also be the beginning of HTTP/2's preface.
  if (exchange_ != nullptr) worker_.recycle(*std::exchange(exchange_, nullptr));
  if (!flush()) return lost();
  close_when_sent_ = true;
}

void Client::on_eof() {
  if (exchange_ == nullptr) {
    if (outbox_.empty()) return close();
    close_when_sent_ = true;
    return;
  }
  if (!begun_) return close();  // inside a head: nobody waits for an answer
  if (exchange_->tunnelled()) {
    if (!std::exchange(told_eof_, true)) exchange_->on_tunnel_input_end();
    return;
  }
  if (!request_complete_) {
    exchange_->on_request_broken({FaultKind::malformed_request, Side::client, "the client ended inside its request"});
  }
}

void Client::on_exchange_end(ClientNext next) {
  exchange_ = nullptr;
  switch (next) {
    case ClientNext::keep:
      if (draining_) close_when_sent_ = true;
      break;
    case ClientNext::close:
      close_when_sent_ = true;
      break;
    case ClientNext::gone:
      return lost();
    case ClientNext::cut:
      reset_on_close();
      return lost();
  }
  begun_ = false;
  if (advancing_) return;
  // The common case needs no further turn: nothing waits, the socket is read dry.
  if (close_when_sent_ || eof_ || !pending_.empty() || transport_->maybe_readable()) return run_soon();
  arm_timer();
}

}  // namespace carpool::proxy
