#include "proxy/drain.h"

#include "exec/errand.h"
#include "proxy/house.h"

namespace carpool::proxy {

Drain::Drain(House& house)
    : house_(house),
      timer_(
          house.workers().front()->loop(), [](void* self) { static_cast<Drain*>(self)->on_timer(); }, this) {}

void Drain::begin() {
  switch (stage()) {
    case Stage::serving: {
      stage_.store(Stage::announced, std::memory_order_relaxed);
      const Duration delay = house_.config().drain_delay;
      if (delay <= Duration::zero()) return close_doors();
      return timer_.arm(house_.workers().front()->loop().now() + delay);
    }
    case Stage::announced:
    case Stage::draining:
      return finish();
    case Stage::over:
      return;
  }
}

void Drain::on_timer() {
  exec::assume_on_loop();
  stage() == Stage::announced ? close_doors() : finish();
}

void Drain::close_doors() {
  stage_.store(Stage::draining, std::memory_order_relaxed);
  for (auto& listener : house_.listeners()) listener->close();
  const Duration grace = house_.config().shutdown_grace;
  timer_.arm(house_.workers().front()->loop().now() + grace);
  for (auto& worker : house_.workers()) {
    exec::send(worker->loop(), [&to = *worker]() LOOP_ONLY { to.drain(); });
  }
}

void Drain::on_worker_empty() {
  // One mail at a time: whoever comes while it travels is seen when it arrives.
  if (!in_the_mail_.exchange(true, std::memory_order_acq_rel)) house_.workers().front()->loop().post(*this);
}

void Drain::arrive() {
  in_the_mail_.store(false, std::memory_order_release);
  if (stage() != Stage::draining) return;
  for (const auto& worker : house_.workers()) {
    if (!worker->empty()) return;
  }
  finish();
}

void Drain::finish() {
  stage_.store(Stage::over, std::memory_order_relaxed);
  timer_.disarm();
  for (auto& worker : house_.workers()) worker->stop();
}

}  // namespace carpool::proxy
