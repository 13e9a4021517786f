// ExecStats: a snapshot of the process's threads, strategies and queues, for /metrics and /threads.
#pragma once

#include <span>

#include "exec/reserved_threads.h"
#include "exec/strategy.h"
#include "exec/thread_pool.h"
#include "metrics/histogram.h"

namespace carpool::exec {

// exec_tasks_total, exec_handovers_total: `strategies`. exec_threads: `threads`; of the leased ones, `reserved` wait
// for a task and the others work. exec_queue_wait_seconds: `queue_wait`.
struct ExecStats {
  StrategyCounts strategies;
  ThreadCounts threads;
  unsigned reserved = 0;  // included in threads.leased
  metrics::HistogramTotals queue_wait;

  unsigned leased() const { return threads.leased > reserved ? threads.leased - reserved : 0; }
};

// `reserve` may be null.
inline ExecStats exec_stats(const ThreadPool& pool, const ReservedThreads* reserve,
                            std::span<const Strategy* const> strategies) {
  ExecStats all{.strategies = {},
                .threads = pool.counts(),
                .reserved = reserve == nullptr ? 0 : reserve->available(),
                .queue_wait = pool.queue_wait()};
  for (const Strategy* strategy : strategies) all.strategies += strategy->counts();
  return all;
}

}  // namespace carpool::exec
