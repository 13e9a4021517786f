#include "proxy/commands/demo/ticker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proxy/commands/demo/start_thread.h"

namespace carpool::proxy {

std::string demo_line(const DemoNumbers& before, const DemoNumbers& now, Duration between) {
  const double seconds = std::max(std::chrono::duration<double>(between).count(), 0.001);
  const auto requests = static_cast<double>(now.requests - std::min(before.requests, now.requests));
  const double reused = static_cast<double>(now.requests - std::min(now.opened, now.requests));
  const double percent = now.requests == 0 ? 0 : 100 * reused / static_cast<double>(now.requests);
  // Rounded down, so that 100 % is shown only if it is exact.
  const auto failed = static_cast<double>(now.failed - std::min(before.failed, now.failed));
  char line[200];
  const int size = std::snprintf(
      line, sizeof line,
      "requests %.0f/s  failed %.0f/s  waiting %llu  |  reuse %.1f %%  opened %llu  saved %.0f connections, %llu TLS "
      "handshakes",
      requests / seconds, failed / seconds, static_cast<unsigned long long>(now.waiting), std::floor(percent * 10) / 10,
      static_cast<unsigned long long>(now.opened), reused, static_cast<unsigned long long>(now.handshakes));
  return {line, static_cast<std::size_t>(size)};
}

Result<std::unique_ptr<Ticker>> Ticker::start(std::function<DemoNumbers()> numbers, std::FILE* out, Duration every) {
  Result<StopSignal> stop = StopSignal::make();
  if (!stop) return stop.take_fault();
  auto ticker = std::make_unique<Ticker>(std::move(*stop), std::move(numbers), out, every);
  Result<std::thread> thread = start_thread("the demo's output", [made = ticker.get()] { made->run(); });
  if (!thread) return thread.take_fault();
  ticker->thread_ = std::move(*thread);
  return ticker;
}

Ticker::Ticker(StopSignal stop, std::function<DemoNumbers()> numbers, std::FILE* out, Duration every)
    : stop_(std::move(stop)), numbers_(std::move(numbers)), out_(out), every_(every) {}

Ticker::~Ticker() {
  stop_.raise();
  if (thread_.joinable()) thread_.join();
}

void Ticker::run() const {
  Instant then = Clock::now();
  DemoNumbers before = numbers_();
  for (Instant next = then + every_; !stop_.wait_until(next); next = std::max(then, next + every_)) {
    const Instant now = Clock::now();
    const DemoNumbers numbers = numbers_();
    std::fprintf(out_, "%s\n", demo_line(before, numbers, now - then).c_str());
    std::fflush(out_);
    before = numbers;
    then = now;
  }
}

}  // namespace carpool::proxy
