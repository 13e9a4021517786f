#include "proxy/server/stats_summary.h"

#include <algorithm>
#include <utility>

#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxNamed = 20;

std::uint64_t open(const pool::Destination::Snapshot& s) {
  return s.alive() - s.of(pool::ConnectionStatus::connecting);
}
}  // namespace

StatsSummaryLog::StatsSummaryLog(exec::Loop& loop, const admin::AdminView& view, Duration interval)
    : loop_(loop), view_(view), interval_(interval), timer_(exec::Timer::bind<&StatsSummaryLog::write>(loop, *this)) {}

void StatsSummaryLog::start() {
  timer_.arm(deadline_after(loop_.now(), interval_));
}

void StatsSummaryLog::write() {
  exec::assume_on_loop();
  std::vector<admin::PoolInfo> pools = view_.pools();
  std::uint64_t active = 0, idle = 0, waiting = 0, borrows = 0, restores = 0, created = 0, failures = 0, leaks = 0;
  for (const admin::PoolInfo& pool : pools) {
    const auto& s = pool.snapshot;
    active += open(s);
    idle += s.of(pool::ConnectionStatus::idle);
    waiting += s.waiting;
    borrows += s.borrows;
    restores += s.restores;
    created += s.created;
    failures += s.failed_total();
    leaks += s.leaks;
  }
  const std::size_t count = pools.size();
  log::info("summary", "pools",
            {{"pools", count},
             {"active", active},
             {"idle", idle},
             {"waiting", waiting},
             {"borrows", borrows},
             {"restores", restores},
             {"created", created},
             {"closed", created - std::min(active, created)},
             {"failures", failures},
             {"leaks", leaks},
             {"busiest", pool_details(std::move(pools), kMaxNamed)}});
  start();
}

std::string pool_details(std::vector<admin::PoolInfo> pools, std::size_t limit) {
  std::stable_sort(pools.begin(), pools.end(), [](const admin::PoolInfo& a, const admin::PoolInfo& b) {
    return a.snapshot.borrows > b.snapshot.borrows;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(limit, pools.size()); ++i) {
    const auto& s = pools[i].snapshot;
    if (i != 0) text += "; ";
    text += pools[i].origin + " active=" + std::to_string(open(s));
    text += " idle=" + std::to_string(s.of(pool::ConnectionStatus::idle)) + " waiting=" + std::to_string(s.waiting);
    text += " borrows=" + std::to_string(s.borrows) + " created=" + std::to_string(s.created);
    text += " closed=" + std::to_string(s.created - std::min(open(s), s.created));
    text += " failures=" + std::to_string(s.failed_total());
  }
  return text;
}

}  // namespace carpool::proxy
