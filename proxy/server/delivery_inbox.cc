#include "proxy/server/delivery_inbox.h"

#include <algorithm>

#include "base/first_exception.h"
#include "pool/destination/destination.h"

namespace carpool::proxy {

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
  if (when < timer_.deadline()) timer_.arm(when);
}

void DeliveryInbox::forget(const std::vector<pool::Destination*>& leaving) {
  std::erase_if(to_wake_, [&leaving](const auto& one) {
    return std::find(leaving.begin(), leaving.end(), one.second) != leaving.end();
  });
}

void DeliveryInbox::wake_due() {
  exec::assume_on_loop();
  const Instant now = loop_.now();
  const std::vector<std::pair<Instant, pool::Destination*>> all = std::exchange(to_wake_, {});
  FirstException thrown;
  for (const auto& [when, destination] : all) {
    if (when <= now) {
      thrown.call([one = destination, now] { one->wake(now); });
    } else {
      wake_at(*destination, when);
    }
  }
  thrown.rethrow();
}

}  // namespace carpool::proxy
