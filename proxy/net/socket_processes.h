// SocketProcesses: the processes that hold the sockets of clients on loopback, found by reading /proc/PID/fd. Reading
// takes milliseconds where many processes run, so it is a blocking task, one at a time, and takes at most a twentieth
// of the time. Sees only processes of the same PID namespace that this user may inspect. Shared by all loops.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exec/submitter.h"
#include "exec/task.h"

namespace carpool::proxy::net {

class SocketProcesses {
 public:
  static constexpr std::size_t kMaxSockets = 4096;   // sockets to find, and sockets with a known process
  static constexpr std::size_t kMaxLinks = 200'000;  // examined in one reading
  // Older results are looked up again, because the kernel reuses the numbers of closed sockets.
  static constexpr Duration kKnownFor = std::chrono::minutes(10);

  explicit SocketProcesses(std::string proc = "/proc") : proc_(std::move(proc)) {}

  struct Owner {
    bool known = false;    // the result will not change
    std::int64_t pid = 0;  // 0: none was found
  };
  // Returns the known owner of the socket. The first call for a socket submits a reading of /proc to `tasks`, unless a
  // reading for another socket of its process has found it.
  Owner find(std::uint64_t inode, exec::Submitter& tasks, Instant now) LOOP_ONLY;
  // Returns true if `pid` is the first process that was found among those of `user`, of any numbering, and still runs.
  bool first_of(std::uint64_t user, std::int64_t pid) LOOP_ONLY;
  void read_now();  // blocking

 private:
  struct Reading final : exec::Task {
    explicit Reading(SocketProcesses& o) : owner(o) {}
    const char* name() const override { return "finding the processes of clients"; }
    void run() override { owner.read_now(); }
    void close() override { owner.end_reading(Duration::zero(), nullptr); }
    SocketProcesses& owner;
  };
  struct Scan;  // of the descriptors of processes
  void forget_ended(const std::vector<std::int64_t>& running);
  void end_reading(Duration cpu, const Scan* scan);  // nullptr: nothing was read
  void keep(const Scan& scan, Instant now) REQUIRES(mutex_);
  void remember(std::uint64_t inode, std::int64_t pid, Instant now) REQUIRES(mutex_);

  const std::string proc_;
  Reading reading_{*this};
  Mutex mutex_;
  std::unordered_set<std::uint64_t> wanted_ GUARDED_BY(mutex_);
  struct Known {
    std::int64_t pid = 0;
    Instant until{};
  };
  std::unordered_map<std::uint64_t, Known> known_ GUARDED_BY(mutex_);
  std::vector<std::int64_t> clients_ GUARDED_BY(mutex_);  // pids that had sockets of clients; read first
  std::unordered_map<std::uint64_t, std::int64_t> first_ GUARDED_BY(mutex_);  // pid by user; at most kMaxUsers
  bool reads_ GUARDED_BY(mutex_) = false;
  Instant not_before_ GUARDED_BY(mutex_){};
};

}  // namespace carpool::proxy::net
