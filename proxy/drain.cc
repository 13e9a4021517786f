#include "proxy/drain.h"

#include "exec/errand.h"
#include "proxy/house.h"

namespace carpool::proxy {

Drain::Drain(House& house)
    : house_(house),
      timer_(
          house.workers().front()->parts.loop, [](void* self) { static_cast<Drain*>(self)->on_timer(); }, this) {}

void Drain::begin() {
  switch (stage()) {
    case Stage::serving: {
      stage_.store(Stage::announced, std::memory_order_relaxed);
      const Duration delay = house_.config().drain_delay;
      if (delay <= Duration::zero()) return close_doors();
      return timer_.arm(house_.workers().front()->parts.loop.now() + delay);
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
  if (stage() == Stage::announced) return close_doors();
  if (!parting_) return finish();
  parting_ = false;
  timer_.arm(house_.workers().front()->parts.loop.now() + house_.config().shutdown_grace / 2);
  drain_workers();
}

void Drain::close_doors() {
  stage_.store(Stage::draining, std::memory_order_relaxed);
  for (auto& listener : house_.listeners()) listener->close();
  const Duration grace = house_.config().shutdown_grace;
  timer_.arm(house_.workers().front()->parts.loop.now() + grace);
  drain_workers();
}

void Drain::drain_workers() {
  for (auto& worker : house_.workers()) {
    exec::send(worker->parts.loop, [&to = *worker]() LOOP_ONLY { to.parts.clients.drain(); });
  }
}

void Drain::hand_over() {
  if (!serving()) return;
  stage_.store(Stage::draining, std::memory_order_relaxed);
  parting_ = true;
  for (auto& listener : house_.listeners()) listener->leave();
  timer_.arm(house_.workers().front()->parts.loop.now() + house_.config().shutdown_grace / 2);
  for (auto& worker : house_.workers()) {
    exec::send(worker->parts.loop, [&to = *worker]() LOOP_ONLY { to.parts.clients.start_graceful_close(); });
  }
}

void Drain::on_worker_empty() {
  // One mail at a time: whoever comes while it travels is seen when it arrives.
  if (!in_the_mail_.exchange(true, std::memory_order_acq_rel)) house_.workers().front()->parts.loop.post(*this);
}

void Drain::arrive() {
  in_the_mail_.store(false, std::memory_order_release);
  if (stage() != Stage::draining) return;
  for (const auto& worker : house_.workers()) {
    if (!worker->parts.clients.empty()) return;
  }
  finish();
}

void Drain::finish() {
  stage_.store(Stage::over, std::memory_order_relaxed);
  timer_.disarm();
  for (auto& worker : house_.workers()) worker->stop();
}

}  // namespace carpool::proxy
