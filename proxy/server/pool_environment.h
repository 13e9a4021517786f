// PoolHouse: what the pool asks of the house around it, on real loops: dials, mail between loops, readiness, closing.
#pragma once

#include "pool/destination/environment.h"
#include "proxy/server/worker.h"

namespace carpool::proxy {

class Connection;
class LeakBook;
class Origins;

class PoolHouse final : public pool::House {
 public:
  PoolHouse(const Workers& workers, LeakBook& leaks) : workers_(workers), leaks_(leaks) {}
  void set_origins(Origins& origins) { origins_ = &origins; }  // before the first dial

  void dial(pool::Destination& destination, pool::Reservation reservation) override;
  void recall(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) override;
  void deliver(pool::LoopId to, pool::Delivery& delivery) override;
  void wake_at(pool::Destination& destination, Instant when) override;
  void detach(pool::Pooled& pooled, pool::LoopId from) override;
  bool attach(pool::Pooled& pooled, std::uint32_t index, std::uint32_t generation) override;
  void dispose(pool::Pooled* pooled, pool::Closed cause) override;
  pool::LoopId here() const override;

 private:
  void note_lost(const Connection& connection);
  const Workers& workers_;
  LeakBook& leaks_;
  Origins* origins_ = nullptr;
};

}  // namespace carpool::proxy
