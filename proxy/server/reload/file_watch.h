// FileWatch: tells when files hold something else than what is in force: a file that an editor replaces or a program
// rewrites, a mounted ConfigMap or Secret (`..data`). Watches their directories (inotify), waits until it is quiet
// there, but not for ever, and then compares what they hold with what their owner has read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "exec/bound.h"
#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/server/reload/file_snapshot.h"

namespace carpool::proxy {

class FileWatch final : private exec::Watcher {
 public:
  FileWatch(exec::Loop& loop, exec::Bound changed);

  // Instead of those before. `in_force`: by file, what the owner has read; what changed since is told as well. A Fault:
  // the system watches no more directories.
  Status watch(const std::vector<std::string>& files, Digests in_force) LOOP_ONLY;

 private:
  Status watch_directories() LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_quiet();
  void wait_for_quiet() LOOP_ONLY;

  exec::Loop& loop_;
  const exec::Bound changed_;
  exec::Timer quiet_;
  std::vector<std::string> files_;
  Digests in_force_;
  Digests judged_;                // at the last look that was acted on, or in force since
  Digests looked_;                // at the last look
  std::optional<Instant> until_;  // of a burst of events: the latest time to look
  Fd fd_;
  exec::WatchKey key_;
};

}  // namespace carpool::proxy
