#include "proxy/server/delivery_inbox.h"

#include <algorithm>
#include <functional>

#include "base/first_exception.h"
#include "pool/destination/destination.h"

namespace carpool::proxy {

namespace {
constexpr auto kLater = [](const auto& one, const auto& other) { return one.first > other.first; };
}  // namespace

DeliveryInbox::DeliveryInbox(exec::Loop& loop)
    : loop_(loop), timer_(exec::Timer::bind<&DeliveryInbox::wake_due>(loop, *this)) {}

void DeliveryInbox::deliver(pool::Delivery& delivery) {
  if (deliveries_.push(delivery)) loop_.post(*this);
}

void DeliveryInbox::arrive() {
  deliveries_.deliver_all(loop_.now());
}

void DeliveryInbox::wake_at(pool::Destination& destination, Instant when) {
  to_wake_.emplace_back(when, &destination);
  std::push_heap(to_wake_.begin(), to_wake_.end(), kLater);
  if (when < timer_.deadline()) timer_.arm(when);
}

void DeliveryInbox::forget(const std::vector<pool::Destination*>& leaving) {
  std::erase_if(to_wake_, [&leaving](const WakeUp& one) {
    return std::binary_search(leaving.begin(), leaving.end(), one.second, std::less<>());
  });
  std::make_heap(to_wake_.begin(), to_wake_.end(), kLater);
}

void DeliveryInbox::wake_due() {
  exec::assume_on_loop();
  const Instant now = loop_.now();
  FirstException thrown;
  // A destination may request its next wake-up, even for now: those are due in the next turn.
  for (std::size_t left = to_wake_.size(); left != 0 && to_wake_.front().first <= now; --left) {
    std::pop_heap(to_wake_.begin(), to_wake_.end(), kLater);
    pool::Destination* one = to_wake_.back().second;
    to_wake_.pop_back();
    thrown.call([one, now] { one->wake(now); });
  }
  if (!to_wake_.empty()) timer_.arm(to_wake_.front().first);
  thrown.rethrow();
}

}  // namespace carpool::proxy
