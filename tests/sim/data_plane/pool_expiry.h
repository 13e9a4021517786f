// PoolExpiry: ends the pools that nothing uses, as IdlePoolReaper does it: the pools are unlinked; each loop forgets
// them in a turn of its own, twice; then they are destroyed.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "pool/destination/destination.h"
#include "pool/destination/snapshot.h"
#include "proxy/exchange/exchange.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "tests/sim/data_plane/loop_plane.h"

namespace carpool::test {

class PoolExpiry {
 public:
  PoolExpiry(Account& account, proxy::OriginRegistry& origins, LoopId loops)
      : account_(account), origins_(origins), loops_(loops) {}

  // On the first loop. However short ago a pool was used.
  void begin(Instant now) LOOP_ONLY {
    if (!leaving_.empty()) return;
    leaving_ = origins_.retire_idle(now, Duration::min());
    for (const pool::Destination* const one : leaving_) {
      if (one->snapshot(now).alive() != 0) account_.complain("a pool ends while it has connections or dials");
    }
    std::sort(leaving_.begin(), leaving_.end(), std::less<>());
    leaving_.insert(leaving_.end(), used_.begin(), used_.end());
    used_.clear();
    std::sort(leaving_.begin(), leaving_.end(), std::less<>());
    rounds_ = 0;
    if (!leaving_.empty()) ask();
  }
  // In each turn of a loop. `forget(leaving)` removes them from what the world keeps for the loop.
  template <class Forget>
  void turn(LoopPlane& plane, const Forget& forget) LOOP_ONLY {
    if (waiting_for_.erase(plane.loop.id()) == 0) return;
    plane.forget(leaving_);
    forget(leaving_);
    plane.each_exchange([this](const proxy::Exchange& exchange) LOOP_ONLY {
      const proxy::OriginRuntime* const origin = exchange.info().origin;
      if (exchange.state() == proxy::ExchangeState::idle || origin == nullptr) return;
      if (std::binary_search(leaving_.begin(), leaving_.end(), origin->destination, std::less<>()))
        in_use_.insert(origin->destination);
    });
    if (waiting_for_.empty()) end_round();
  }
  // Returns the pools that were unlinked and that all loops have forgotten. The caller destroys them.
  std::vector<pool::Destination*> take_forgotten() {
    if (rounds_ < kRounds) return {};
    rounds_ = 0;
    return std::exchange(leaving_, {});
  }

 private:
  static constexpr unsigned kRounds = 2;
  void ask() {
    in_use_.clear();
    for (LoopId n = 0; n < loops_; ++n) waiting_for_.insert(n);
  }
  void end_round() {
    origins_.directory().forget_starved(leaving_);
    for (pool::Destination* const one : in_use_) {
      used_.push_back(one);
      std::erase(leaving_, one);
    }
    if (leaving_.empty()) return;
    if (++rounds_ < kRounds) ask();
  }

  Account& account_;
  proxy::OriginRegistry& origins_;
  const LoopId loops_;
  std::vector<pool::Destination*> leaving_, used_;
  std::set<pool::Destination*> in_use_;
  std::set<LoopId> waiting_for_;
  unsigned rounds_ = 0;
};

}  // namespace carpool::test
