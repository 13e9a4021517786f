// How a client's connection ends: gracefully, by time, by a reset where its answer broke off; and the connection that
// it keeps for itself meanwhile.
#include <sys/socket.h>

#include <utility>

#include "proxy/downstream/client.h"
#include "proxy/worker.h"

namespace carpool::proxy {

namespace {
// While lingering: how much of what a client still sends is thrown away, and for how long, so that the reset which a
// close on unread bytes causes does not destroy the answer on its way (RFC 9112 §9.6).
constexpr std::uint32_t kLingerBytes = 1024 * 1024;
constexpr Duration kLinger = std::chrono::seconds(2);
}  // namespace

// ---- ends ----

// Everything is sent: FIN, then throw away what still comes, so that no reset overtakes the answer.
void Client::end_gracefully() {
  close_when_sent_ = false;
  if (eof_ || (pending_.empty() && !transport_->maybe_readable() && request_complete_)) return close();
  std::string().swap(pending_);
  transport_->shut_write();
  fate_ = Fate::lingering;
  timer_.arm(worker_.loop().now() + kLinger);
}

bool Client::discard_input() {
  while (transport_->maybe_readable()) {
    const std::span<char> scratch = worker_.loop().scratch();
    const net::IoResult io = transport_->read(scratch);
    if (io.io == net::Io::would_block) return false;
    thrown_away_ += static_cast<std::uint32_t>(io.bytes);
    if (io.io != net::Io::ok || thrown_away_ > kLingerBytes) {
      close();
      return false;
    }
  }
  return false;
}

void Client::lost() {
  if (fate_ == Fate::closed) return;
  close();
}

void Client::close() {
  if (fate_ == Fate::closed) return;
  fate_ = Fate::closed;
  // What did not go out whole must not look whole.
  if (!outbox_.empty() || (exchange_ != nullptr && begun_ && exchange_->half_told())) transport_->reset_on_close();
  if (exchange_ != nullptr) {
    Exchange& exchange = *exchange_;
    if (begun_) {
      exchange.on_client_gone();
    } else {
      exchange_ = nullptr;
      worker_.recycle(exchange);
    }
  }
  private_.reset();
  timer_.disarm();
  exec::Deferred::unlink();
  worker_.loop().forget(transport_->fd(), key_);
  if (!advancing_) worker_.bury(*this);
}

void Client::end() {
  close();
}

void Client::drain() {
  draining_ = true;
  static_cast<void>(end_if_idle());
}

bool Client::end_if_idle() {
  if (fate_ != Fate::open || begun_ || in_head() || close_when_sent_) return false;
  close_when_sent_ = true;
  run_soon();
  return true;
}

// ---- time ----

void Client::arm_timer() {
  if (fate_ != Fate::open) return;
  const Instant now = worker_.loop().now();
  if (in_head()) {
    if (!head_timed_) timer_.arm(deadline_after(now, listen_.header_timeout));  // from the head's first byte
    head_timed_ = true;
    return;
  }
  head_timed_ = false;
  timer_.arm(deadline_after(now, listen_.idle_timeout));
}

void Client::on_timer() {
  exec::assume_on_loop();
  if (fate_ == Fate::lingering) return close();
  if (exchange_ != nullptr && begun_) return arm_timer();  // the exchange has deadlines of its own
  if (!in_head()) return close();                          // idle, or it does not take its last answer
  refuse({FaultKind::head_timeout, Side::client, "header_timeout passed inside a request's head"});
  advance();
}

// ---- connections that authenticated this client ----

pool::Lease Client::take_private(const OriginContext& origin) {
  if (!private_ || private_->origin().destination != origin.destination) return {};
  pool::Lease lease = private_->take();
  private_.reset();
  return lease;
}

bool Client::keep_private(const OriginContext& origin, pool::Lease& lease) {
  private_ = std::make_unique<PrivateConnection>(worker_.loop(), origin, std::move(lease));
  return true;
}

}  // namespace carpool::proxy
