#include "proxy/reload/round.h"

#include <utility>

#include "exec/errand.h"
#include "proxy/house.h"

namespace carpool::proxy {

void ReloadRound::visit(Worker& worker, const std::vector<const Listener*>& closed) {
  worker.on_reload(dns, closed);
  if (!renewed.empty()) worker.retire_outdated_of(renewed);
  arrived();
}

// The first worker changes the listeners; the others wait for it, to be told whose clients end.
void ReloadRound::begin() {
  Worker& first = *house_.workers().front();
  const std::vector<const Listener*> closed = house_.change_listeners(*this);
  house_.origins().follow_limits(first.parts.loop.now());
  for (auto& other : house_.workers()) {
    if (other.get() == &first) continue;
    exec::send(other->parts.loop,
               [round = shared_from_this(), &to = *other, closed]() LOOP_ONLY { round->visit(to, closed); });
  }
  visit(first, closed);
}

bool ReloadRound::run(Duration patience) {
  missing_ = house_.workers().size();
  exec::send(house_.workers().front()->parts.loop, [round = shared_from_this()]() LOOP_ONLY { round->begin(); });
  std::unique_lock lock(mutex_);
  return all_.wait_for(lock, patience, [this] { return missing_ == 0; });
}

void ReloadRound::arrived() {
  const std::scoped_lock lock(mutex_);
  if (--missing_ == 0) all_.notify_one();
}

}  // namespace carpool::proxy
