// The response's way: parsed where it was read, written to the client from there; and what follows when its connection
// fails under it.
#include <algorithm>
#include <utility>

#include "proxy/authentication.h"
#include "proxy/downstream/client.h"
#include "proxy/exchange.h"
#include "proxy/origins.h"
#include "proxy/worker.h"

namespace carpool::proxy {

// ---- relaying: the response travels ----

void Exchange::read_response() {
  std::size_t budget = kTurnBytes;
  net::Transport& transport = upstream().transport();
  while (client_->backlog() < kHighMark && transport.maybe_readable()) {
    if (budget == 0) {
      if (!exec::Deferred::linked()) worker_.loop().defer(*this);
      return;
    }
    const std::span<char> scratch = worker_.loop().scratch();
    const net::IoResult io = transport.read(scratch);
    if (io.io == net::Io::would_block) return;
    if (io.io != net::Io::ok) return on_upstream_end(io);
    budget -= std::min(budget, io.bytes);
    if (!feed({scratch.data(), io.bytes})) return;
    touch();
  }
}

// False: this exchange is over, or became a tunnel; nothing of it may be touched.
bool Exchange::feed(std::string_view bytes) {
  std::size_t used = 0;
  for (;;) {
    const Result<http::Fed> fed = reader_.feed(bytes.substr(used), response_, *this);
    if (!fed) {
      on_upstream_broken(fed.fault(), false);
      return false;
    }
    used += fed->taken;
    switch (fed->progress) {
      case http::Progress::need_more:
        return flush_reply();
      case http::Progress::head:
        on_head();
        break;
      case http::Progress::upgraded:
        switch_protocols(bytes.substr(used));
        return false;
      case http::Progress::message:
        leftover_ = used < bytes.size();
        on_response_end();
        return false;
    }
  }
}

void Exchange::on_head() {
  if (response_.status == 101) return;  // Progress::upgraded follows
  if (response_.status < 200) {
    if (request_.version == http::Version::http11) {
      http::write_informational(worker_.to_client().text(), response_, worker_.pseudonym());
    }
    return;
  }
  head_done_ = true;
  facts_.head_back = worker_.loop().now();
  facts_.status = response_.status;
  private_ = private_ || authenticates_connection(request_) || authenticates_connection(response_);
  // An answer before the request's end: whether the client will send the rest is unknown, so its connection ends with
  // it.
  close_client_ = !request_.keep_alive || !upload_.ended() || worker_.draining();
  http::ReplyRules rules = reply_rules();
  reply_framing_ = http::reply_framing(response_, rules);
  if (reply_framing_ == http::Framing::until_close) rules.close = close_client_ = true;
  enter(ExchangeEvent::response_head);
  http::write_response(worker_.to_client().text(), response_, rules);
}

http::ReplyRules Exchange::reply_rules() const {
  http::ReplyRules rules;
  rules.via_pseudonym = worker_.pseudonym();
  rules.client_version = request_.version;
  rules.close = close_client_;
  rules.head_request = request_.method == "HEAD";
  return rules;
}

void Exchange::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  facts_.bytes_out += bytes.size();
  Gather& out = worker_.to_client();
  if (reply_framing_ != http::Framing::chunked) return out.add(bytes);
  http::write_chunk_head(out.text(), bytes.size());
  out.add(bytes);
  out.text().append("\r\n");
}

void Exchange::on_trailer(std::string_view name, std::string_view value) {
  exec::assume_on_loop();
  if (http::trailer_allowed(name)) trailers_.add(name, value);
}

bool Exchange::flush_reply() {
  Gather& out = worker_.to_client();
  if (out.empty() || client_->send(out)) return true;
  on_client_gone();
  return false;
}

void Exchange::on_response_end() {
  Gather& out = worker_.to_client();
  if (reply_framing_ == http::Framing::chunked) http::write_last_chunk(out.text(), trailers_);
  end_lease();  // before the client knows: whoever asks next, on any loop, finds the connection
  const bool sent = client_->send(out);
  ClientNext next = ClientNext::keep;
  if (close_client_ || !upload_.ended()) next = ClientNext::close;
  if (!sent) next = ClientNext::gone;
  enter(ExchangeEvent::ended);
  rest(next);
}

// Back to the pool only when proven clean: both bodies complete, nothing behind them, both sides mean to go on.
void Exchange::end_lease() {
  const bool whole = upload_.ended() && upload_.outbox.empty() && !write_failed_ && !leftover_;
  const Instant now = worker_.loop().now();
  if (!whole) return give_back(pool::Closed::error);
  if (!response_.keep_alive || response_.framing == http::Framing::until_close)
    return give_back(pool::Closed::peer_closed);
  upstream().user = nullptr;
  if (private_) return client_->keep_private(*facts_.origin, std::move(lease_));
  lease_.release(now);
}

void Exchange::on_upstream_end(const net::IoResult& io) {
  if (io.io == net::Io::eof) {
    Result<http::Progress> end = reader_.finish();
    if (end) return on_response_end();
    return on_upstream_broken(end.take_fault(), true);
  }
  const FaultKind kind = reader_.any_byte() ? FaultKind::response_incomplete : FaultKind::connection_terminated;
  on_upstream_broken({kind, Side::upstream, std::string(io.detail)}, true);
}

// The connection failed under the exchange. Before the response's head another one may do.
void Exchange::on_upstream_broken(Fault fault, bool connection_ended) {
  if (state_ == ExchangeState::relaying) return break_off(std::move(fault));
  Attempt attempt;
  attempt.method = request_.method;
  attempt.has_body = !bodyless();
  attempt.body_whole = upload_.whole();
  attempt.reused = lease_.reused();
  attempt.any_byte_sent = upload_.outbox.taken() > 0;
  attempt.any_byte_back = reader_.any_byte();
  attempt.connection_ended = connection_ended;
  attempt.idempotent_retries = idempotent_retries_;
  attempt.proven_replays = proven_replays_;
  const RetryRules rules{facts_.origin->request.max_retries, facts_.origin->request.retry_idempotent};
  const std::optional<Proof> proof = may_retry(attempt, rules);
  give_back(connection_ended && lease_.reused() ? pool::Closed::peer_closed : pool::Closed::error);
  if (!proof) {
    facts_.origin->destination->note_failure(fault);
    return reply(fault);
  }

  ++(*proof == Proof::idempotent_reused ? idempotent_retries_ : proven_replays_);
  ++facts_.retries;
  worker_.count_retry(*facts_.origin, *proof);
  private_ = write_failed_ = false;
  upload_.restart();
  enter(ExchangeEvent::retry);
  borrow(true);
  if (lease_) pump();
  resume_client();
}

}  // namespace carpool::proxy
