#include "proxy/server/drain.h"

#include <algorithm>
#include <utility>

#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
double seconds_of(Duration time) {
  return std::chrono::duration<double>(time).count();
}
}  // namespace

Drain::Drain(exec::Loop& loop, Host& host)
    : loop_(loop),
      host_(host),
      worker_empty_(loop, exec::Bound::to<&Drain::finish_if_empty>(*this)),
      timer_(exec::Timer::bind<&Drain::on_timer>(loop, *this)) {}

void Drain::begin() {
  switch (stage()) {
    case Stage::serving: {
      host_.on_stopping();
      stage_.store(Stage::announced, std::memory_order_relaxed);
      const Duration delay = host_.drain_delay();
      log::info("server", "draining: not ready, still accepting", {{"for_seconds", seconds_of(delay)}});
      if (delay <= Duration::zero()) return close_listeners();
      return timer_.arm(loop_.now() + delay);
    }
    case Stage::announced:
    case Stage::draining:
      if (std::exchange(unasked_, false)) {
        if (graceful_ && !exporting_) close_idle(timer_.deadline() + host_.shutdown_grace() / 2);
        return;
      }
      return finish("draining: running requests are cut off now");
    case Stage::over:
      return;
  }
}

void Drain::on_timer() {
  exec::assume_on_loop();
  if (stage() == Stage::announced) return close_listeners();
  if (exporting_) return finish("drained: every client has left; the last export has no answer");
  if (!graceful_) return finish("draining: shutdown_grace is over, running requests are cut off");
  close_idle(loop_.now() + host_.shutdown_grace() / 2);
}

void Drain::close_idle(Instant end) {
  graceful_ = false;
  log::info("server", "draining: idle clients are closed", {{"grace_seconds", seconds_of(end - loop_.now())}});
  timer_.arm(end);
  host_.drain_clients();
}

void Drain::close_listeners() {
  stage_.store(Stage::draining, std::memory_order_relaxed);
  host_.close_listeners();
  const Duration grace = host_.shutdown_grace();
  log::info("server", "draining: no new clients, running requests may finish", {{"grace_seconds", seconds_of(grace)}});
  timer_.arm(loop_.now() + grace);
  host_.drain_clients();
}

void Drain::hand_over() {
  if (!serving()) return;
  stage_.store(Stage::draining, std::memory_order_relaxed);
  graceful_ = true;
  unasked_ = true;
  host_.leave_listeners();
  log::info("server", "draining: the successor accepts, clients may finish",
            {{"grace_seconds", seconds_of(host_.shutdown_grace())}});
  timer_.arm(loop_.now() + host_.shutdown_grace() / 2);
  host_.start_graceful_close();
}

void Drain::finish_if_empty() {
  exec::assume_on_loop();
  if (stage() != Stage::draining || exporting_ || !host_.clients_gone()) return;
  exporting_ = host_.begin_last_export();
  if (!exporting_) return finish("drained: every client has left");
  timer_.arm(std::min(timer_.deadline(), loop_.now() + kLastExport));
}

void Drain::on_last_export() {
  if (stage() == Stage::draining && exporting_) finish("drained: every client has left");
}

void Drain::finish(std::string_view why) {
  log::info("server", why);
  stage_.store(Stage::over, std::memory_order_relaxed);
  timer_.disarm();
  host_.stop_loops();
}

}  // namespace carpool::proxy
