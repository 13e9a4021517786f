#include "proxy/server/idle_pool_reaper.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "exec/fan_out.h"
#include "pool/directory/directory.h"
#include "proxy/config/in_force.h"
#include "proxy/server/worker.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
constexpr unsigned kRounds = 2;
}  // namespace

void IdlePoolReaper::sweep(Instant now) {
  if (asking_) return;
  if (leaving_.empty()) {
    rounds_ = 0;
    leaving_ = origins_.retire_idle(now, config_.get().pool_total.origin_idle_timeout);
    std::sort(leaving_.begin(), leaving_.end(), std::less<>());  // also if memory for the others is exhausted
    leaving_.insert(leaving_.end(), used_.begin(), used_.end());
    used_.clear();
    std::sort(leaving_.begin(), leaving_.end(), std::less<>());
  } else if (rounds_ == kRounds && origins_.destroy(leaving_)) {
    leaving_.clear();
  }
  if (!leaving_.empty() && rounds_ < kRounds) ask();
}

void IdlePoolReaper::ask() {
  asking_ = true;
  exec::query_loops_then<std::vector<pool::Destination*>>(
      loop_of(*workers_.front()), workers_, [this](Worker& worker) LOOP_ONLY { return worker.forget(leaving_); },
      [this](const std::vector<std::vector<pool::Destination*>>& in_use) LOOP_ONLY { answered(in_use); });
}

// A loop that did not respond may still use the pools.
void IdlePoolReaper::answered(const std::vector<std::vector<pool::Destination*>>& in_use) {
  asking_ = false;
  // No starved destination among them can register again: every turn that began earlier has ended.
  origins_.directory().forget_starved(leaving_);
  const unsigned passed = std::exchange(rounds_, 0U);
  if (in_use.size() != workers_.size()) return;
  for (const std::vector<pool::Destination*>& some : in_use) {
    for (pool::Destination* one : some) {
      const auto at = std::lower_bound(leaving_.begin(), leaving_.end(), one, std::less<>());
      if (at == leaving_.end() || *at != one) continue;  // another loop uses it too
      used_.push_back(one);
      leaving_.erase(at);
    }
  }
  rounds_ = passed + 1;
}

}  // namespace carpool::proxy
