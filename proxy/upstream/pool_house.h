// PoolHouse: what the pool asks of the house around it, on real loops: dials, mail between loops, readiness, closing.
#pragma once

#include "pool/pooled.h"

namespace carpool::proxy {

class Connection;
class House;

class PoolHouse final : public pool::House {
 public:
  explicit PoolHouse(proxy::House& house) : house_(house) {}

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
  proxy::House& house_;
};

}  // namespace carpool::proxy
