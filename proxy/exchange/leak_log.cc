#include "proxy/exchange/leak_log.h"

#include <utility>

namespace carpool::proxy {

std::uint64_t LeakLog::add(LeakRecord leak) {
  const Held lock(mutex_);
  leak.id = ++last_;
  leaks_.push_front(std::move(leak));
  if (leaks_.size() > kMax) leaks_.pop_back();
  return last_;
}

void LeakLog::returned(std::uint64_t id, Duration after) {
  const Held lock(mutex_);
  for (LeakRecord& leak : leaks_) {
    if (leak.id == id) leak.returned_after = after;
  }
}

std::vector<LeakRecord> LeakLog::all() const {
  const Held lock(mutex_);
  return {leaks_.begin(), leaks_.end()};
}

}  // namespace carpool::proxy
