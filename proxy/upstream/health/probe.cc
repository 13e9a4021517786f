#include "proxy/upstream/health/probe.h"

#include <utility>

#include "exec/read_buffer.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

namespace {
// Larger responses are not read to the end; the connection is closed instead.
constexpr std::size_t kMaxBody = std::size_t{64} * 1024;
}  // namespace

Probe::Probe(const UpstreamContext& context, Owner& owner, const OriginRuntime& origin, pool::Lease lease)
    : context_(context),
      owner_(owner),
      origin_(origin),
      lease_(std::move(lease)),
      connection_id_(static_cast<Connection&>(*lease_).id()),
      reader_(H2LoopContext::response_limits()),
      timer_(exec::Timer::bind<&Probe::on_timeout>(context.loop, *this)) {}

void Probe::start() {
  connection().events = this;
  if (!silent()) return out_of_step();
  const std::string& what = origin_.pool.health_check.probe;
  reader_.expect(std::string_view(what).substr(0, what.find(' ')), false, origin_.protocols.bare_lf);
  timer_.arm(context_.loop.now() + origin_.pool.connect_timeout);
  WriteBatch out;
  write_line(out.text());
  out.text().append(" HTTP/1.1\r\nHost: ").append(origin_.authority);
  if (!origin_.absolute.empty() && !origin_.parent->authorization.empty()) {
    out.text().append("\r\nProxy-Authorization: ").append(origin_.parent->authorization);
  }
  out.text().append("\r\nUser-Agent: carpool\r\n\r\n");
  if (write_queue_.send(connection().transport(), out) == WriteQueue::Sent::failed)
    return fail("the request could not be sent");
  if (connection().transport().maybe_readable()) on_upstream_ready();
}

// Reads the socket, because bytes may have arrived in this turn that no event has reported yet.
bool Probe::silent() {
  net::Transport& transport = connection().transport();
  transport.on_readiness({.readable = true, .writable = false, .hangup = false});
  return !transport.hangup_seen() && transport.no_data_pending();
}

// Writes a request line such as "HEAD /up". A parent proxy gets the absolute form, where OPTIONS * has no path (RFC
// 9112 §3.2.4).
void Probe::write_line(std::string& out) const {
  const std::string_view what = origin_.pool.health_check.probe;
  if (origin_.absolute.empty()) {
    out.append(what);
    return;
  }
  const std::size_t path = what.find(' ') + 1;
  out.append(what.substr(0, path)).append(origin_.absolute).append(what.ends_with(" *") ? "" : what.substr(path));
}

void Probe::end(pool::CloseCause cause) {
  connection().events = nullptr;
  lease_.discard(cause, context_.loop.now());
}

void Probe::on_upstream_ready() {
  net::Transport& transport = connection().transport();
  if (!write_queue_.empty() && write_queue_.flush(transport) == WriteQueue::Sent::failed)
    return fail("the request could not be sent");
  while (transport.maybe_readable()) {
    const exec::ReadBuffer buffer(context_.loop);
    const net::IoResult io = transport.read(buffer.span());
    if (io.io == net::Io::would_block) return;
    if (io.io != net::Io::ok) return on_io_end(io);
    if (!receive(buffer.view(io.bytes))) return;
  }
}

// Returns false if the probe is over, so that it must not be accessed any more.
bool Probe::receive(std::string_view bytes) {
  for (;;) {
    const Result<http::ParseResult> fed = reader_.feed(bytes, head_, *this);
    if (!fed || body_bytes_ > kMaxBody) {
      fail(fed ? "the response is too long" : "the response is malformed");
      return false;
    }
    bytes.remove_prefix(fed->consumed);
    if (fed->progress == http::Progress::need_more) return true;
    if (!std::exchange(head_seen_, true) && connection().transport().input_precedes(write_queue_.bytes_written())) {
      out_of_step();
      return false;
    }
    if (fed->progress == http::Progress::head) continue;
    finish(fed->progress == http::Progress::message && bytes.empty());
    return false;
  }
}

void Probe::on_io_end(const net::IoResult& io) {
  if (io.io == net::Io::eof && reader_.finish()) return finish(false);  // EOF ended the response
  fail(io.detail);
}

// Reports no failure after a complete response: it proves that the origin is alive. A connection that cannot be reused
// is closed.
void Probe::finish(bool whole) {
  const Instant now = context_.loop.now();
  connection().events = nullptr;
  const bool stays = whole && head_.keep_alive && head_.framing != http::Framing::until_close && write_queue_.empty();
  const std::optional<pool::CloseCause> outdated = connection().close_cause(now);
  if (stays && !outdated) {
    lease_.return_unused(now);
  } else {
    lease_.discard(outdated.value_or(pool::CloseCause::peer_closed), now);
  }
  owner_.probed(*this, {});
}

// The origin sent something that is not the response to this request.
void Probe::out_of_step() {
  end(pool::CloseCause::peer_closed);
  owner_.probed(*this, {});
}

void Probe::fail(std::string_view why) {
  end(pool::CloseCause::unhealthy);
  owner_.probed(*this, why);
}

void Probe::on_timeout() {
  exec::assume_on_loop();
  fail("the probe timed out");
}

}  // namespace carpool::proxy
