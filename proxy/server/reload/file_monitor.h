// FileMonitor: reports when files differ from those in force: a file that an editor replaces or a program rewrites, a
// mounted ConfigMap or Secret (`..data`), a symbolic link or a directory on the way to it. Watches their directories
// (inotify), waits until no event arrives for a while (with an upper limit), and then compares the contents with those
// that the owner has read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "exec/bound.h"
#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/server/reload/file_snapshot.h"
#include "proxy/server/reload/watched_directories.h"

namespace carpool::proxy {

class FileMonitor final : private exec::Watcher {
 public:
  FileMonitor(exec::Loop& loop, exec::Bound changed);

  // Replaces the watched files. `in_force`: per file, the digest that the owner has read; a change made since then is
  // reported too. Returns a Fault, which names a directory, if not all can be watched (the system's limit of
  // watches, a directory that carpool may not read); the others are watched, and the next call tries again.
  Status watch(const std::vector<std::string>& files, Digests in_force) LOOP_ONLY;
  // The owner could not apply the change that was reported: reports it again, after pauses that double, until watch()
  // is called or the files are again those in force.
  void try_again() LOOP_ONLY;

 private:
  Status follow_paths() LOOP_ONLY;
  Status watch_directories() LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_debounced();
  void on_pause_over();
  void debounce() LOOP_ONLY;

  exec::Loop& loop_;
  const exec::Bound changed_;
  exec::Timer debounce_;
  exec::Timer pause_;
  Duration next_pause_;
  std::vector<std::string> files_;
  Digests in_force_;
  Digests handled_;                 // last contents acted on, or in force since
  Digests checked_;                 // contents at the last check
  std::optional<Instant> until_;    // latest time to check during a burst of events
  WatchedDirectories directories_;  // empty if they must be watched again
  bool complete_ = true;            // all of them are watched
  Fd fd_;
  exec::WatchKey key_;
};

}  // namespace carpool::proxy
