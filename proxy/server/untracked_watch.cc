#include "proxy/server/untracked_watch.h"

#include <utility>

#include "proxy/exchange/leak_log.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr Duration kPause = std::chrono::seconds(10);
}  // namespace

UntrackedWatch::UntrackedWatch(exec::Loop& loop, exec::Executor& background, const pool::Directory& directory,
                               LeakLog& leaks)
    : directory_(directory), leaks_(leaks), cycle_(loop, background, *this, kPause) {}

void UntrackedWatch::work() {
  const Instant now = Clock::now();
  for (LiveConnection::Info& one : connections_.find_untracked(directory_, now)) {
    log::error("leak", "a connection exists that is in no pool",
               {{"origin", one.origin},
                {"connection", one.id},
                {"local", one.local},
                {"peer", one.peer},
                {"age_seconds", std::chrono::duration<double>(now - one.opened).count()}});
    LeakRecord leak;
    leak.kind = LeakKind::untracked;
    leak.origin = std::move(one.origin);
    leak.action = "report";
    leak.found = now;
    leak.borrower.connection = one.id;
    leak.borrower.held = now - one.opened;
    leaks_.add(std::move(leak));
  }
}

}  // namespace carpool::proxy
