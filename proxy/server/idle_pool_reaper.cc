#include "proxy/server/idle_pool_reaper.h"

#include <algorithm>

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
    leaving_ = origins_.retire_idle(now, config_.get().pool_total.origin_idle_timeout);
    rounds_ = 0;
  } else if (rounds_ == kRounds && origins_.destroy(leaving_)) {
    leaving_.clear();
  }
  if (!leaving_.empty() && rounds_ < kRounds) ask();
}

void IdlePoolReaper::ask() {
  asking_ = true;
  exec::ask_loops_then<bool>(
      loop_of(*workers_.front()), workers_, [this](Worker& worker) LOOP_ONLY { return worker.forget(leaving_); },
      [this](const std::vector<bool>& in_use) LOOP_ONLY { answered(in_use); });
}

// A loop that did not respond may still use the pools.
void IdlePoolReaper::answered(const std::vector<bool>& in_use) {
  asking_ = false;
  // No starved destination among them can register again: every turn that began earlier has ended.
  origins_.directory().forget_starved(leaving_);
  const bool none = in_use.size() == workers_.size() && std::find(in_use.begin(), in_use.end(), true) == in_use.end();
  rounds_ = none ? rounds_ + 1 : 0;
}

}  // namespace carpool::proxy
