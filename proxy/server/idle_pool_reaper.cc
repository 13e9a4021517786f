#include "proxy/server/idle_pool_reaper.h"

#include <utility>

#include "exec/posted_function.h"
#include "proxy/config/in_force.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
constexpr unsigned kRounds = 2;
}  // namespace

void IdlePoolReaper::sweep(Instant now) {
  if (asked_ != 0) return;
  if (leaving_.empty()) {
    leaving_ = origins_.retire_idle(now, config_.get().pool_total.origin_idle_timeout);
    rounds_ = 0;
  } else if (rounds_ == kRounds && origins_.destroy(leaving_)) {
    leaving_.clear();
  }
  if (!leaving_.empty() && rounds_ < kRounds) ask();
}

void IdlePoolReaper::ask() {
  known_ = false;
  asked_ = workers_.size();
  for (const auto& worker : workers_) {
    exec::send(worker->parts.loop, [this, &to = *worker]() LOOP_ONLY {
      const bool knows = to.forget(leaving_);
      exec::send(workers_.front()->parts.loop, [this, knows]() LOOP_ONLY { answered(knows); });
    });
  }
}

void IdlePoolReaper::answered(bool knows) {
  known_ |= knows;
  if (--asked_ != 0) return;
  // No starved destination among them can register again: every turn that began earlier has ended.
  origins_.directory().forget_hungry(leaving_);
  rounds_ = known_ ? 0 : rounds_ + 1;
}

}  // namespace carpool::proxy
