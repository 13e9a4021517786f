#include "proxy/upstream/h1_carrier.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proxy/worker.h"

namespace carpool::proxy {

H1Carrier::H1Carrier(Worker& worker, CarrierUser& user, http::ResponseHead& response)
    : worker_(worker), user_(user), response_(response), reader_(worker.response_limits()) {}

void H1Carrier::begin(Connection& connection, std::string_view method, bool upgrade) {
  CARPOOL_ASSERT(connection_ == nullptr);
  connection_ = &connection;
  connection.user = this;
  note_standing(connection, Standing::borrowed, method);
  reader_.expect(method, upgrade);
  framing_ = http::Framing::none;
  asked_whole_ = head_done_ = leftover_ = write_failed_ = tunnel_ = eof_ = shut_when_sent_ = false;
}

// Its end may have been noticed between the grant and now, when nobody was there to act on it.
bool H1Carrier::usable() {
  return !transport().hangup_seen() && (!transport().maybe_readable() || transport().quiet());
}

// ---- the request ----

void H1Carrier::send_head(const http::RequestHead& head, const http::ForwardRules& rules) {
  Gather& out = worker_.to_upstream();
  out.clear();
  framing_ = head.framing;
  http::write_request(out.text(), head, rules);
}

void H1Carrier::send_body(std::string_view bytes) {
  if (bytes.empty()) return;
  Gather& out = worker_.to_upstream();
  if (framing_ != http::Framing::chunked) return out.add(bytes);
  http::write_chunk_head(out.text(), bytes.size());
  out.add(bytes);
  out.text().append("\r\n");
}

void H1Carrier::send_end(const http::Fields& trailers) {
  asked_whole_ = true;
  if (framing_ == http::Framing::chunked) http::write_last_chunk(worker_.to_upstream().text(), trailers);
}

bool H1Carrier::flush() {
  Gather& out = worker_.to_upstream();
  if (write_failed_) out.clear();  // nobody reads it any more
  if (out.empty()) return false;
  if (outbox_.send(transport(), out, worker_.pieces()) == Outbox::Sent::failed) on_write_failed();
  return !write_failed_;
}

// The origin will not read on. What it said before it left still counts: an early answer is an answer.
void H1Carrier::on_write_failed() {
  outbox_.drop_waiting();
  transport().note({.readable = true, .writable = false, .hangup = true});
  write_failed_ = true;
  exec::Deferred::unlink();
  worker_.loop().defer(*this);  // read what is there, outside of the client's turn
}

void H1Carrier::on_upstream_ready() {
  if (!outbox_.empty() && transport().maybe_writable() && !write_failed_) {
    if (outbox_.flush(transport()) == Outbox::Sent::failed) return on_write_failed();
    if (outbox_.empty() && std::exchange(shut_when_sent_, false)) transport().shut_write();
    if (!user_.on_room()) return;
  }
  read_on();
}

// ---- the response ----

void H1Carrier::run() {
  if (connection_ == nullptr) return;
  if (write_failed_ && !user_.on_room()) return;
  read_on();
  if (connection_ != nullptr && write_failed_ && !head_done_ && !tunnel_) {
    broken({FaultKind::connection_terminated, Side::upstream, "the origin stopped reading"}, true);
  }
}

void H1Carrier::read_on() {
  if (tunnel_) return read_tunnel();
  read_response();
}

void H1Carrier::read_response() {
  std::size_t budget = kTurnBytes;
  while (user_.may_take() && transport().maybe_readable()) {
    if (budget == 0) {
      if (!exec::Deferred::linked()) worker_.loop().defer(*this);
      return;
    }
    const std::span<char> scratch = worker_.loop().scratch();
    const net::IoResult io = transport().read(scratch.first(std::min(scratch.size(), user_.room())));
    if (io.io == net::Io::would_block) return;
    if (io.io != net::Io::ok) return on_end(io);
    budget -= std::min(budget, io.bytes);
    if (!feed({scratch.data(), io.bytes})) return;
  }
}

// False: this exchange is over, or became a tunnel; nothing of it may be touched.
bool H1Carrier::feed(std::string_view bytes) {
  std::size_t used = 0;
  for (;;) {
    const Result<http::Fed> fed = reader_.feed(bytes.substr(used), response_, user_);
    if (!fed) {
      broken(fed.fault(), false);
      return false;
    }
    used += fed->taken;
    switch (fed->progress) {
      case http::Progress::need_more:
        return user_.on_response_piece();
      case http::Progress::head:
        if (response_.status >= 200) head_done_ = true;
        if (!user_.on_response_head()) return false;
        break;
      case http::Progress::upgraded:
        tunnel_ = true;
        if (user_.on_switched(bytes.substr(used))) read_tunnel();
        return false;
      case http::Progress::message:
        leftover_ = used < bytes.size();
        user_.on_response_end();
        return false;
    }
  }
}

void H1Carrier::on_end(const net::IoResult& io) {
  if (io.io == net::Io::eof) {
    Result<http::Progress> end = reader_.finish();
    if (end) return user_.on_response_end();
    return broken(end.take_fault(), true);
  }
  const FaultKind kind = reader_.any_byte() ? FaultKind::response_incomplete : FaultKind::connection_terminated;
  broken({kind, Side::upstream, std::string(io.detail)}, true);
}

void H1Carrier::broken(Fault fault, bool connection_ended) {
  Breakage breakage;
  breakage.fault = std::move(fault);
  breakage.connection_ended = connection_ended;
  breakage.any_byte_sent = outbox_.taken() > 0;
  breakage.any_byte_back = reader_.any_byte();
  user_.on_broken(std::move(breakage));
}

// ---- the end ----

void H1Carrier::leave() {
  connection_->user = nullptr;
  connection_ = nullptr;
  exec::Deferred::unlink();
  worker_.to_upstream().clear();
}

// Back to the pool only when proven clean: both bodies complete, nothing behind them, both sides mean to go on.
std::optional<pool::Closed> H1Carrier::finish(pool::Lease&) {
  const bool whole = asked_whole_ && outbox_.empty() && !write_failed_ && !leftover_;
  leave();
  outbox_.clear();
  if (!whole) return pool::Closed::error;
  if (!response_.keep_alive || response_.framing == http::Framing::until_close) return pool::Closed::peer_closed;
  return std::nullopt;
}

std::optional<pool::Closed> H1Carrier::abandon(pool::Closed cause, pool::Lease&) {
  leave();
  outbox_.clear();
  return cause;
}

// ---- tunnels ----

void H1Carrier::open_tunnel() {
  tunnel_ = true;
  if (transport().maybe_readable()) worker_.loop().defer(*this);  // it may speak first, and have spoken
}

void H1Carrier::shut_write_when_sent() {
  if (outbox_.empty()) {
    transport().shut_write();
  } else {
    shut_when_sent_ = true;
  }
}

void H1Carrier::read_tunnel() {
  std::size_t budget = kTurnBytes;
  while (!eof_ && user_.may_take() && transport().maybe_readable()) {
    if (budget == 0) {
      if (!exec::Deferred::linked()) worker_.loop().defer(*this);
      return;
    }
    const std::span<char> scratch = worker_.loop().scratch();
    const net::IoResult io = transport().read(scratch.first(std::min(scratch.size(), user_.room())));
    if (io.io == net::Io::would_block) return;
    if (io.io == net::Io::failed)
      return broken({FaultKind::connection_terminated, Side::upstream, std::string(io.detail)}, true);
    if (io.io == net::Io::eof) {
      eof_ = true;
      return user_.on_tunnel_eof();
    }
    budget -= std::min(budget, io.bytes);
    user_.on_body({scratch.data(), io.bytes});
    if (!user_.on_response_piece()) return;
  }
}

}  // namespace carpool::proxy
