#include "proxy/leak_watch.h"

#include <algorithm>

#include "proxy/house.h"
#include "proxy/log/log.h"
#include "proxy/origins.h"
#include "proxy/worker.h"

namespace carpool::proxy {

namespace {
constexpr Duration kOften = std::chrono::milliseconds(25);
constexpr Duration kSeldom = std::chrono::seconds(1);
}  // namespace

LeakWatch::LeakWatch(Worker& worker)
    : worker_(worker), timer_(exec::Timer::bind<&LeakWatch::tick>(worker.loop(), *this)) {}

void LeakWatch::start() {
  timer_.arm(worker_.loop().now() + kOften);
}

// A quarter of the shortest leak_timeout in use: a leak is found at most so late.
void LeakWatch::tick() {
  exec::assume_on_loop();
  const Instant now = worker_.loop().now();
  Duration shortest = kSeldom * 4;
  worker_.for_each_exchange([&](Exchange& exchange) {
    exec::assume_on_loop();
    if (!exchange.holds_lease()) return;
    const Duration timeout = exchange.facts().origin->pool.leak_timeout;
    if (timeout <= Duration::zero()) return;
    shortest = std::min(shortest, timeout);
    const bool late = now - exchange.facts().leased > timeout;
    if (late && !exchange.tunnelled() && exchange.leak() == 0) report(exchange);
  });
  timer_.arm(now + std::max(kOften, shortest / 4));
}

void LeakWatch::report(Exchange& exchange) {
  const OriginContext& origin = *exchange.facts().origin;
  const bool discard = origin.pool.leak_action == config::LeakAction::discard;
  admin::LeakFacts leak;
  leak.origin = origin.destination->label();
  leak.action = discard ? "discard" : "report";
  leak.found = worker_.loop().now();
  leak.borrower = exchange.describe_borrower();
  log::warn("leak", "a connection is held longer than leak_timeout",
            {{"origin", leak.origin},
             {"connection", leak.borrower.connection},
             {"request", leak.borrower.request},
             {"client", leak.borrower.client},
             {"pid", leak.borrower.pid.value_or(0)},
             {"uid", leak.borrower.uid.value_or(-1)},
             {"trace_id", leak.borrower.trace_id},
             {"phase", leak.borrower.phase},
             {"age_seconds", std::chrono::duration<double>(leak.borrower.held).count()},
             {"bytes_in", leak.borrower.bytes_in},
             {"bytes_out", leak.borrower.bytes_out},
             {"action", leak.action}});
  origin.destination->note_leak(worker_.loop().id());
  exchange.mark_leaked(worker_.house().leaks().add(std::move(leak)));
  if (discard) exchange.end_leaked();
}

}  // namespace carpool::proxy
