// WorkerPoolEnvironment: implements the pool's environment on real loops: dials, messages between loops, readiness and
// closing.
#pragma once

#include "pool/destination/environment.h"
#include "proxy/server/workers.h"

namespace carpool::metrics {
class Registry;
}

namespace carpool::proxy {

class Connection;
class LeakLog;
class OriginRegistry;

class WorkerPoolEnvironment final : public pool::Environment {
 public:
  WorkerPoolEnvironment(const Workers& workers, LeakLog& leaks);
  // Must be called before the first dial.
  void set_origins(OriginRegistry& origins, metrics::Registry& metrics) {
    origins_ = &origins;
    metrics_ = &metrics;
  }

  void dial(pool::Destination& destination, pool::Reservation reservation) override;
  void cancel_dial(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) override;
  void deliver(LoopId to, pool::Delivery& delivery) override;
  void wake_at(pool::Destination& destination, Instant when) override;
  void size_changed(pool::Destination& destination, const pool::SizeChange& change) override;
  void pause_ended(pool::Destination& destination) override;
  void detach(pool::PooledConnection& pooled, LoopId from) override;
  bool attach(pool::PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override;
  void dispose(pool::PooledConnection* pooled, pool::CloseCause cause) override;
  LoopId here() const override;
  std::uint64_t seed() const override { return seed_; }

 private:
  void note_lost(const Connection& connection);
  void note_flood(const Connection& connection);
  const Workers& workers_;
  LeakLog& leaks_;
  OriginRegistry* origins_ = nullptr;
  metrics::Registry* metrics_ = nullptr;
  const std::uint64_t seed_;
};

}  // namespace carpool::proxy
