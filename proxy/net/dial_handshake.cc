// The TLS handshake of a dial. Its costly steps run on another thread if the plan has tasks.
#include <utility>

#include "base/thread_cpu.h"
#include "proxy/net/dial_impl.h"

namespace carpool::proxy::net {

namespace {
constexpr Duration kRejectedPause = std::chrono::milliseconds(5);
}  // namespace

void Dial::Impl::begin_handshake(Fd connected) {
  phase = Phase::handshaking;
  limit_phase(plan.tls_timeout);
  stream = tls::TlsTransport::client(*plan.tls, std::move(connected), plan.origin->host, plan.origin->port);
  if (!plan.alpn.empty()) stream->offer(plan.alpn);
  auto watched = loop.watch(stream->fd(), *this);
  if (!watched) return finish(watched.take_fault());
  key = *watched;
  on_handshake_step(work_on_handshake(&tls::TlsTransport::hello));  // cheap
}

void Dial::Impl::on_ready(exec::Ready ready) {
  if (phase == Phase::asking) return step_tunnel(ready.hangup);
  if (handshake.on_readiness(*stream, ready) && !retry.armed()) step_handshake();
}

Result<bool> Dial::Impl::work_on_handshake(Result<bool> (tls::TlsTransport::*step)()) {
  const Duration before = thread_cpu();
  Result<bool> done = (*stream.*step)();
  made.tls_cpu += thread_cpu() - before;
  return done;
}

void Dial::Impl::step_handshake() {
  if (plan.tasks == nullptr) return on_handshake_step(work_on_handshake());
  handshake.submit(*plan.tasks);
}

void Dial::Impl::handshake_returned() {
  if (handshake.abandoned) {
    const std::unique_ptr<Impl> ended(this);
    return;
  }
  const bool rejected = handshake.take_rejection(*stream);
  if (rejected) retry.arm(loop.now() + kRejectedPause);
  if (handshake.deadline_passed) return finish(deadline_fault());
  if (rejected) return;
  if (auto result = handshake.take_result(*stream)) return on_handshake_step(std::move(*result));
  step_handshake();
}

void Dial::Impl::on_retry() {
  exec::assume_on_loop();
  step_handshake();
}

// Returns true if the origin, which works, does not support the protocol that one request needs.
bool Dial::Impl::refuses_http1() const {
  const bool alone = plan.alpn.size() == 1 && plan.alpn.front() == "http/1.1";
  return alone && stream->protocols_refused();
}

void Dial::Impl::on_handshake_step(Result<bool> done) {
  if (!done) {
    Fault fault = done.take_fault();
    if (refuses_http1()) fault.side = Side::client;
    if (fault.side == Side::upstream && plan.parent == nullptr) record_failure(made.peer);
    return finish(std::move(fault));
  }
  if (!*done) return;
  made.tls = end_phase();
  unwatch();
  made.transport = std::move(stream);
  made.proven_peer = ProvenPeer::of(made.peer, plan.tls);
  finish(std::move(made));
}

}  // namespace carpool::proxy::net
