#include "proxy/upstream/warm_up.h"

#include <algorithm>
#include <utility>

#include "proxy/config/in_force.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);
constexpr Duration kResultLifetime = std::chrono::minutes(1);
}  // namespace

WarmUp::WarmUp(exec::Loop& loop, OriginRegistry& origins, const ConfigInForce& config, Host& host)
    : loop_(loop),
      origins_(origins),
      config_(config),
      host_(host),
      timer_(exec::Timer::bind<&WarmUp::on_timer>(loop, *this)) {}

void WarmUp::start() {
  for (const config::OriginSettings& settings : config_.get().origins) {
    const std::uint32_t wanted = std::max(settings.pool.warm_up.enabled ? settings.pool.warm_up.size : 0,
                                          std::min(settings.pool.min_idle, settings.pool.largest()));
    if (wanted == 0) continue;
    Result<OriginRuntime*> origin = origins_.at(settings.origin);
    if (!origin) {
      log::warn("pool", "no warm-up", {{"why", origin.fault().detail}});
      continue;
    }
    begin(**origin, wanted, true);
  }
  starting_ = true;  // set last, because a warm-up may end before the next one begins
  notify_ready();
}

std::uint64_t WarmUp::begin(OriginRuntime& origin, std::uint32_t open, bool at_start) {
  const Instant now = loop_.now();
  WarmUpJob* order = nullptr;
  {
    const Held lock(mutex_);
    // Removes old results; a caller that has not fetched its result by now never will.
    orders_.remove_if(
        [&](const WarmUpJob& old) { return old.over && !old.at_start && now - old.until > kResultLifetime; });
    order = &orders_.emplace_back();
    order->number = ++last_;
    order->origin = &origin;
    order->open = std::min(open, origin.pool.largest());
    order->until = now + origin.pool.connect_timeout;
    order->pause = kFirstPause;
    order->at_start = at_start;
  }
  const std::uint64_t number = order->number;
  dial_more(*order, 1);
  arm();
  return number;
}

// Starts the missing dials, at most `most`. Ends the warm-up if none is missing or none may start.
void WarmUp::dial_more(WarmUpJob& order, std::uint32_t most) {
  const Instant now = loop_.now();
  order.out = order.origin->destination->warm_up(order.open, most, now);
  if (order.out == 0) end(order);
}

void WarmUp::dial_ended(const pool::Destination& destination, const Fault* fault) {
  const auto mine = std::find_if(orders_.begin(), orders_.end(), [&](const WarmUpJob& order) {
    return !order.over && order.out != 0 && order.origin->destination == &destination;
  });
  if (mine == orders_.end()) return;  // its warm-up has reached the deadline
  --mine->out;
  {
    const Held lock(mutex_);
    if (fault == nullptr) ++mine->result.made;
    if (fault != nullptr && !mine->result.failure) mine->result.failure = fault->detail;
  }
  if (mine->out != 0) return;
  if (mine->result.failure) return end(*mine);
  dial_more(*mine, mine->origin->pool.largest());
}

void WarmUp::end(WarmUpJob& order) {
  const Instant now = loop_.now();
  {
    const Held lock(mutex_);
    order.over = true;
    if (order.result.failure) {
      log::warn("pool", "warm-up failed",
                {{"origin", order.origin->destination->label()},
                 {"made", order.result.made},
                 {"why", *order.result.failure}});
      order.until = now + order.pause;
    } else {
      log::info("pool", "warmed up", {{"origin", order.origin->destination->label()}, {"made", order.result.made}});
    }
    order.first_try = false;
    if (order.at_start && !order.result.failure) order.at_start = false;  // failed() and under_way() skip it
  }
  arm();
  notify_ready();
}

void WarmUp::try_again(WarmUpJob& order, Instant now) {
  {
    const Held lock(mutex_);
    order.over = false;
    order.result.failure.reset();
    order.until = now + order.origin->pool.connect_timeout;
    order.pause = std::min(order.pause * 2, kLongestPause);
  }
  dial_more(order, 1);
}

void WarmUp::on_timer() {
  exec::assume_on_loop();
  const Instant now = loop_.now();
  for (WarmUpJob& order : orders_) {
    if (order.until > now) continue;
    if (!order.over) {
      {
        const Held lock(mutex_);
        if (!order.result.failure) order.result.failure = "connect_timeout passed";
      }
      order.out = 0;
      end(order);
    } else if (order.at_start) {
      try_again(order, now);
    }
  }
  arm();
}

void WarmUp::arm() {
  Instant next = kNever;
  for (const WarmUpJob& order : orders_) {
    if (!order.over || order.at_start) next = std::min(next, order.until);
  }
  timer_.arm(next);
}

void WarmUp::notify_ready() {
  if (!starting_ || !under_way().empty()) return;
  starting_ = false;
  host_.on_warm();
}

std::optional<WarmUpResult> WarmUp::result(std::uint64_t number) {
  const Held lock(mutex_);
  const auto mine =
      std::find_if(orders_.begin(), orders_.end(), [&](const WarmUpJob& order) { return order.number == number; });
  if (mine == orders_.end()) return WarmUpResult{};
  if (!mine->over) return std::nullopt;
  return mine->result;
}

std::vector<std::string> WarmUp::under_way() const {
  const Held lock(mutex_);
  std::vector<std::string> all;
  for (const WarmUpJob& order : orders_) {
    if (order.at_start && order.first_try) all.push_back(order.origin->destination->label());
  }
  return all;
}

std::vector<std::string> WarmUp::failed() const {
  const Held lock(mutex_);
  std::vector<std::string> all;
  for (const WarmUpJob& order : orders_) {
    if (!order.at_start || order.first_try) continue;
    all.push_back(order.origin->destination->label() + ": " + order.result.failure.value_or("trying again"));
  }
  return all;
}

}  // namespace carpool::proxy
