// FileWatch: calls back when files change, however they are replaced: written in place, renamed over, or behind the
// symbolic link that Kubernetes turns in a mounted ConfigMap or Secret (`..data`). Watches their directories (inotify),
// waits until it is quiet, and then looks whether their contents are others than before.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "exec/loop.h"
#include "exec/timer.h"

namespace carpool::proxy {

class FileWatch final : private exec::Watcher {
 public:
  using Callback = void (*)(void* owner);
  FileWatch(exec::Loop& loop, Callback callback, void* owner);

  // Instead of those before. A Fault: the system watches no more directories.
  Status watch(const std::vector<std::string>& files) LOOP_ONLY;

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_quiet();
  std::size_t contents() const;

  exec::Loop& loop_;
  const Callback callback_;
  void* const owner_;
  exec::Timer quiet_;
  std::vector<std::string> files_;
  std::size_t seen_ = 0, looked_ = 0;  // hashes of their contents: told of, and as they were at the last look
  Fd fd_;
  exec::WatchKey key_;
};

}  // namespace carpool::proxy
