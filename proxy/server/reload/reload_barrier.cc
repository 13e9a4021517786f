#include "proxy/server/reload/reload_barrier.h"

#include "proxy/server/listener_set.h"
#include "proxy/server/worker.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
constexpr Duration kCheckInterval = std::chrono::milliseconds(50);
}  // namespace

// The first worker changes the listeners. Then every worker receives the listeners whose clients to drain.
void ReloadBarrier::begin(const std::shared_ptr<exec::Replies<Done>>& replies) {
  if (stopped()) return;
  if (parts_.drain.serving()) applied = parts_.listeners.apply(listeners);  // while draining, no listener is opened
  parts_.origins.apply_limits(loop_of(*parts_.workers.front()).now());
  exec::fan_out(parts_.workers, replies, [round = shared_from_this()](Worker& worker) LOOP_ONLY {
    worker.on_reload(round->dns, round->otlp, round->applied.closed);
    if (!round->renewed.empty() || round->addresses_forbidden) worker.retire_outdated_of(round->renewed);
    return Done{};
  });
}

bool ReloadBarrier::run(Duration timeout) {
  const std::size_t asked = parts_.workers.size();
  const auto replies = std::make_shared<exec::Replies<Done>>(asked);
  exec::send(loop_of(*parts_.workers.front()),
             [round = shared_from_this(), replies]() LOOP_ONLY { round->begin(replies); });
  // A loop that has been stopped handles no more mail, and the end of the process waits for this task.
  const Instant until = deadline_after(Clock::now(), timeout);
  while (!replies->all_ended(kCheckInterval) && !stopped() && Clock::now() < until) {
  }
  return replies->take().size() == asked;
}

}  // namespace carpool::proxy
