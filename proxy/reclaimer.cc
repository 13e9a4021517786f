#include "proxy/reclaimer.h"

#include <utility>

#include "exec/errand.h"
#include "proxy/house.h"
#include "proxy/log/log.h"

namespace carpool::proxy {

namespace {
constexpr unsigned kRounds = 2;
}  // namespace

void Reclaimer::sweep(Instant now) {
  if (asked_ != 0) return;
  Origins& origins = house_.origins();
  if (leaving_.empty()) {
    leaving_ = origins.retire_idle(now, house_.config().pool_total.origin_idle_timeout);
    rounds_ = 0;
  } else if (rounds_ == kRounds && origins.bury(leaving_)) {
    leaving_.clear();
  }
  if (!leaving_.empty() && rounds_ < kRounds) ask();
}

void Reclaimer::ask() {
  known_ = false;
  asked_ = house_.workers().size();
  for (const auto& worker : house_.workers()) {
    exec::send(worker->parts.loop, [this, &to = *worker]() LOOP_ONLY {
      const bool knows = to.forget(leaving_);
      exec::send(house_.workers().front()->parts.loop, [this, knows]() LOOP_ONLY { answered(knows); });
    });
  }
}

void Reclaimer::answered(bool knows) {
  known_ |= knows;
  if (--asked_ != 0) return;
  // Nobody who began before can ask for a place under the total in their names any more.
  house_.origins().directory().forget_hungry(leaving_);
  rounds_ = known_ ? 0 : rounds_ + 1;
}

}  // namespace carpool::proxy
