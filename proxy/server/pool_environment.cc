#include "proxy/server/pool_environment.h"

#include <memory>
#include <random>
#include <utility>

#include "metrics/registry.h"
#include "pool/directory/explain_size.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/server/worker.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

namespace {
std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}
}  // namespace

WorkerPoolEnvironment::WorkerPoolEnvironment(const Workers& workers, LeakLog& leaks)
    : workers_(workers), leaks_(leaks), seed_(random_seed()) {}

void WorkerPoolEnvironment::dial(pool::Destination& destination, pool::Reservation reservation) {
  exec::assume_on_loop();
  OriginRuntime* origin = origins_->of(destination);
  CARPOOL_ASSERT(origin != nullptr);
  Worker::current().parts.dialer.dial(destination, *origin, std::move(reservation));
}

void WorkerPoolEnvironment::cancel_dial(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) {
  exec::assume_on_loop();
  Worker::current().parts.dialer.cancel_dial(destination, index, generation);
}

void WorkerPoolEnvironment::deliver(LoopId to, pool::Delivery& delivery) {
  workers_[to]->parts.inbox.deliver(delivery);
}

void WorkerPoolEnvironment::wake_at(pool::Destination& destination, Instant when) {
  exec::assume_on_loop();
  Worker::current().parts.inbox.wake_at(destination, when);
}

void WorkerPoolEnvironment::size_changed(pool::Destination& destination, const pool::SizeChange& change) {
  log::info("pool", "the size of the pool follows the load",
            {{"origin", destination.label()},
             {"from", std::uint64_t{change.from}},
             {"to", std::uint64_t{change.to}},
             {"reason", pool::name(change.reason)},
             {"why", pool::why_resized(change)}});
}

void WorkerPoolEnvironment::pause_ended(pool::Destination& destination) {
  log::warn("pool", "the operator's pause has ended: connections are lent again", {{"origin", destination.label()}});
}

void WorkerPoolEnvironment::detach(pool::PooledConnection& pooled, LoopId from) {
  workers_[from]->parts.loop.unwatch_shared(static_cast<Connection&>(pooled).transport().fd());
}

// The new registration reports readiness again, so that an event that the old loop dropped is not lost.
bool WorkerPoolEnvironment::attach(pool::PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) {
  exec::assume_on_loop();
  net::Transport& transport = static_cast<Connection&>(pooled).transport();
  transport.forget_readiness();
  return static_cast<bool>(Worker::current().parts.loop.watch_shared(transport.fd(), index, generation));
}

void WorkerPoolEnvironment::dispose(pool::PooledConnection* pooled, pool::CloseCause cause) {
  const std::unique_ptr<pool::PooledConnection> dies(pooled);
  auto& connection = static_cast<Connection&>(*pooled);
  // A borrower detaches from the connection before it gives the lease back, so only a leaked connection still has one.
  if (cause == pool::CloseCause::leak && connection.events != nullptr) note_lost(connection);
  if (connection.transport().flooded()) note_flood(connection);
  log_state_change(connection, ConnectionState::closed, pool::name(cause));
}

void WorkerPoolEnvironment::note_flood(const Connection& connection) {
  metrics_->record_tls_flood(metrics::TlsPeer::origin);
  log::debug("tls", "too many TLS messages without data",
             {{"origin", connection.origin}, {"connection", connection.id()}, {"peer", connection.peer()}});
}

// Logs a lease that was destroyed without being given back, which is a bug. Its borrower may be partly destroyed, so it
// is not called.
void WorkerPoolEnvironment::note_lost(const Connection& connection) {
  LeakRecord leak;
  leak.kind = LeakKind::lost;
  leak.origin = connection.origin;
  leak.action = "discard";
  leak.found = Clock::now();
  leak.borrower.connection = connection.id();
  log::error("leak", "a lease was destroyed without being returned",
             {{"origin", connection.origin}, {"connection", connection.id()}, {"local", connection.local()}});
  leaks_.add(std::move(leak));
}

LoopId WorkerPoolEnvironment::here() const {
  return Worker::current().parts.loop.id();
}

}  // namespace carpool::proxy
