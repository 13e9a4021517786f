#include "proxy/exchange/leak_detector.h"

#include <algorithm>

#include "proxy/exchange/exchange_pool.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/telemetry/leak_record.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
constexpr Duration kOften = std::chrono::milliseconds(25);
constexpr Duration kSeldom = std::chrono::seconds(1);
}  // namespace

LeakDetector::LeakDetector(exec::Loop& loop, const ExchangePool& exchanges, const OriginRegistry& origins,
                           LeakLog& leaks)
    : loop_(loop),
      exchanges_(exchanges),
      origins_(origins),
      leaks_(leaks),
      timer_(exec::Timer::bind<&LeakDetector::tick>(loop, *this)) {}

void LeakDetector::start() {
  timer_.arm(loop_.now() + kOften);
}

// The interval is a quarter of the shortest leak_timeout, in force or of a lease that began before a reload, so a leak
// is reported at most that much late.
void LeakDetector::tick() {
  exec::assume_on_loop();
  const Instant now = loop_.now();
  Duration shortest = kSeldom * 4;
  if (const Duration in_force = origins_.leak_timeout(); in_force > Duration::zero())
    shortest = std::min(shortest, in_force);
  exchanges_.for_each([&](Exchange& exchange) {
    exec::assume_on_loop();
    if (!exchange.holds_lease()) return;
    const Duration timeout = exchange.info().origin->pool.leak_timeout;
    if (timeout <= Duration::zero()) return;
    shortest = std::min(shortest, timeout);
    const bool late = now - exchange.info().leased > timeout;
    if (late && !exchange.tunnelled() && exchange.leak() == 0) report(exchange);
  });
  timer_.arm(now + std::max(kOften, shortest / 4));
}

void LeakDetector::report(Exchange& exchange) {
  const OriginRuntime& origin = *exchange.info().origin;
  const bool discard = origin.pool.leak_action == config::LeakAction::discard;
  LeakRecord leak;
  leak.origin = origin.destination->label();
  leak.action = discard ? "discard" : "report";
  leak.found = loop_.now();
  leak.borrower = exchange.describe_borrower();
  log::warn("leak", "a connection is held longer than leak_timeout",
            {{"origin", leak.origin},
             {"connection", leak.borrower.connection},
             {"request", leak.borrower.request},
             {"client", leak.borrower.client},
             {"pid", leak.borrower.pid},
             {"uid", leak.borrower.uid},
             {"trace_id", log::unless_empty(leak.borrower.trace_id)},
             {"phase", leak.borrower.phase},
             {"age_seconds", std::chrono::duration<double>(leak.borrower.held).count()},
             {"bytes_in", leak.borrower.bytes_in},
             {"bytes_out", leak.borrower.bytes_out},
             {"action", leak.action}});
  origin.destination->note_leak(loop_.id());
  exchange.mark_leaked(leaks_.add(std::move(leak)));
  if (discard) exchange.end_leaked();
}

}  // namespace carpool::proxy
