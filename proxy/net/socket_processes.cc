#include "proxy/net/socket_processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "base/thread_cpu.h"

namespace carpool::proxy::net {
namespace {

constexpr Duration kMinPause = std::chrono::milliseconds(20), kMaxPause = std::chrono::seconds(10);
constexpr int kShare = 20;  // at most one part in this many of a processor
constexpr std::size_t kMaxClients = 64, kMaxUsers = 1024;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// Returns the inode of "socket:[123]".
std::optional<std::uint64_t> socket_of(const std::string& link) {
  constexpr std::string_view kBegin = "socket:[";
  std::array<char, 64> text{};
  const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  std::string_view name(text.data(), static_cast<std::size_t>(size));
  if (!name.starts_with(kBegin) || !name.ends_with(']')) return std::nullopt;
  return number_in<std::uint64_t>(name.substr(kBegin.size(), name.size() - kBegin.size() - 1));
}

template <class Visit>
void each_entry(const std::string& path, const Visit& visit) {
  const Directory directory(::opendir(path.c_str()));
  if (!directory) return;
  // This thread alone reads this directory.
  while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
    if (!visit(std::string_view(entry->d_name))) return;
  }
}

// Returns the processes, the newest first: a client whose process is not known is likely one that began lately.
std::vector<std::int64_t> processes_in(const std::string& proc) {
  std::vector<std::int64_t> pids;
  each_entry(proc, [&](std::string_view name) {
    if (const auto pid = number_in<std::int64_t>(name)) pids.push_back(*pid);
    return true;
  });
  std::sort(pids.begin(), pids.end(), std::greater<>());
  return pids;
}

}  // namespace

SocketProcesses::Owner SocketProcesses::find(std::uint64_t inode, exec::Submitter& tasks, Instant now) {
  bool read = false;
  {
    const Held lock(mutex_);
    if (const auto found = known_.find(inode); found != known_.end()) {
      if (now < found->second.until) return {true, found->second.pid};
      known_.erase(found);
    }
    if (wanted_.size() < kMaxSockets) wanted_.insert(inode);
    read = !reads_ && now >= not_before_;
    reads_ = reads_ || read;
  }
  if (read) tasks.submit(exec::lend(reading_));
  return {};
}

bool SocketProcesses::first_of(std::uint64_t user, std::int64_t pid) {
  const Held lock(mutex_);
  if (const auto first = first_.find(user); first != first_.end()) return first->second == pid;
  return first_.size() < kMaxUsers && first_.emplace(user, pid).second;
}

void SocketProcesses::forget_ended(const std::vector<std::int64_t>& running) {
  const std::unordered_set<std::int64_t> pids(running.begin(), running.end());
  const Held lock(mutex_);
  std::erase_if(first_, [&](const auto& one) { return pids.count(one.second) == 0; });
  std::erase_if(clients_, [&](std::int64_t pid) { return pids.count(pid) == 0; });
}

void SocketProcesses::read_now() {
  const Duration before = thread_cpu();
  std::vector<std::int64_t> pids = processes_in(proc_);
  forget_ended(pids);
  std::unordered_set<std::uint64_t> wanted;
  std::vector<std::int64_t> clients;
  {
    const Held lock(mutex_);
    wanted = wanted_;
    clients = clients_;
  }
  std::stable_partition(pids.begin(), pids.end(), [&clients](std::int64_t pid) {
    return std::find(clients.begin(), clients.end(), pid) != clients.end();
  });
  Found found, beside;
  std::size_t links = 0;
  for (const std::int64_t pid : pids) {
    const std::string folder = proc_ + '/' + std::to_string(pid) + "/fd/";
    const std::size_t before_it = found.size();
    std::vector<std::uint64_t> others;
    each_entry(folder, [&](std::string_view name) {
      const auto inode = socket_of(std::string(folder).append(name));
      if (inode && wanted.count(*inode) != 0) {
        found.emplace(*inode, pid);
      } else if (inode && others.size() < kMaxSockets) {
        others.push_back(*inode);
      }
      return ++links < kMaxLinks;
    });
    if (found.size() != before_it) {
      for (const std::uint64_t inode : others) beside.emplace(inode, pid);
    }
    if (links >= kMaxLinks || found.size() == wanted.size()) break;
  }
  for (const std::uint64_t inode : wanted) found.emplace(inode, 0);
  end_reading(found, beside, thread_cpu() - before);
}

// `beside`: further sockets of the processes that have the wanted ones. Usually they are clients' connections too.
void SocketProcesses::end_reading(const Found& found, const Found& beside, Duration cpu) {
  const Held lock(mutex_);
  reads_ = false;
  const Instant now = Clock::now();
  not_before_ = now + std::clamp(cpu * kShare, kMinPause, kMaxPause);
  std::erase_if(known_, [now](const auto& one) { return one.second.until <= now; });
  if (known_.size() + found.size() > kMaxSockets) known_.clear();
  for (const auto& [inode, pid] : found) {
    wanted_.erase(inode);
    known_.insert_or_assign(inode, Known{pid, now + kKnownFor});
    if (pid == 0 || std::find(clients_.begin(), clients_.end(), pid) != clients_.end()) continue;
    if (clients_.size() == kMaxClients) clients_.erase(clients_.begin());
    clients_.push_back(pid);
  }
  for (const auto& [inode, pid] : beside) {
    if (known_.size() >= kMaxSockets / 2) break;  // the rest is for those that are asked for
    if (wanted_.count(inode) == 0) known_.insert_or_assign(inode, Known{pid, now + kKnownFor});
  }
}

}  // namespace carpool::proxy::net
