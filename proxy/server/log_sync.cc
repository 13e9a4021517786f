#include "proxy/server/log_sync.h"

#include "proxy/server/executors.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

LogSync::LogSync(exec::Loop& loop, Executors& executors, Duration period)
    : loop_(loop), executors_(executors), period_(period), timer_(exec::Timer::bind<&LogSync::due>(loop, *this)) {
  timer_.arm(loop.now() + period);
}

void LogSync::due() {
  executors_.in_background(exec::lend(*this));
}

void LogSync::run() {
  log::sync();
  loop_.post(*this);
}

}  // namespace carpool::proxy
