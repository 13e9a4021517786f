#include "proxy/server/reload/reload_barrier.h"

#include <utility>

#include "exec/posted_function.h"
#include "proxy/server/listener_set.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

void ReloadBarrier::visit(Worker& worker, const std::vector<const Listener*>& closed) {
  worker.on_reload(dns, closed);
  if (!renewed.empty()) worker.retire_outdated_of(renewed);
  arrived();
}

// The first worker changes the listeners; the others then learn which listeners' clients to drain.
void ReloadBarrier::begin() {
  Worker& first = *parts_.workers.front();
  std::vector<const Listener*> closed;
  if (parts_.drain.serving()) closed = parts_.listeners.apply(listeners);  // while draining no listener is opened
  parts_.origins.apply_limits(first.parts.loop.now());
  for (auto& other : parts_.workers) {
    if (other.get() == &first) continue;
    exec::send(other->parts.loop,
               [round = shared_from_this(), &to = *other, closed]() LOOP_ONLY { round->visit(to, closed); });
  }
  visit(first, closed);
}

bool ReloadBarrier::run(Duration timeout) {
  missing_ = parts_.workers.size();
  exec::send(parts_.workers.front()->parts.loop, [round = shared_from_this()]() LOOP_ONLY { round->begin(); });
  std::unique_lock lock(mutex_);
  return all_.wait_for(lock, timeout, [this] { return missing_ == 0; });
}

void ReloadBarrier::arrived() {
  const std::scoped_lock lock(mutex_);
  if (--missing_ == 0) all_.notify_one();
}

}  // namespace carpool::proxy
