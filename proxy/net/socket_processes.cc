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

// `link`: a descriptor, in `directory`. Returns the inode of "socket:[123]".
std::optional<std::uint64_t> socket_of(int directory, const char* link) {
  constexpr std::string_view kBegin = "socket:[";
  std::array<char, 64> text{};
  const ssize_t size = ::readlinkat(directory, link, text.data(), text.size());
  if (size <= 0) return std::nullopt;
  std::string_view name(text.data(), static_cast<std::size_t>(size));
  if (!name.starts_with(kBegin) || !name.ends_with(']')) return std::nullopt;
  return number_in<std::uint64_t>(name.substr(kBegin.size(), name.size() - kBegin.size() - 1));
}

// Visit: called with the directory's descriptor and the name of each entry, until it returns false. Returns true if the
// directory was read to its end.
template <class Visit>
bool each_entry(const std::string& path, const Visit& visit) {
  const Directory directory(::opendir(path.c_str()));
  if (!directory) return false;
  // This thread alone reads this directory.
  while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
    if (!visit(::dirfd(directory.get()), entry->d_name)) return false;
  }
  return true;
}

// Returns the processes, the newest first: a client whose process is not known is likely one that began lately.
std::vector<std::int64_t> processes_in(const std::string& proc) {
  std::vector<std::int64_t> pids;
  each_entry(proc, [&](int, std::string_view name) {
    if (const auto pid = number_in<std::int64_t>(name)) pids.push_back(*pid);
    return true;
  });
  std::sort(pids.begin(), pids.end(), std::greater<>());
  return pids;
}

bool contains(const std::vector<std::int64_t>& pids, std::int64_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

}  // namespace

struct SocketProcesses::Scan {
  using Owners = std::unordered_map<std::uint64_t, std::int64_t>;  // pid by inode

  void read(const std::string& proc, std::int64_t pid);
  bool done() const { return links >= kMaxLinks || found.size() == wanted.size(); }

  std::unordered_set<std::uint64_t> wanted;
  std::vector<std::int64_t> clients;  // processes that had sockets of clients
  Owners found;                       // the wanted sockets
  Owners beside;                      // the other sockets of clients: usually they are connections to carpool, too
  std::unordered_set<std::int64_t> complete;  // clients whose sockets are all in `found` or `beside`
  std::size_t links = 0;
};

void SocketProcesses::Scan::read(const std::string& proc, std::int64_t pid) {
  const std::size_t found_before = found.size();
  std::vector<std::uint64_t> others;
  const bool whole = each_entry(proc + '/' + std::to_string(pid) + "/fd", [&](int directory, const char* name) {
    const auto inode = socket_of(directory, name);
    if (inode && wanted.count(*inode) != 0) {
      found.emplace(*inode, pid);
    } else if (inode && others.size() < kMaxSockets) {
      others.push_back(*inode);
    }
    return ++links < kMaxLinks;
  });
  const bool client = found.size() != found_before || contains(clients, pid);
  if (!client) return;
  for (const std::uint64_t inode : others) beside.emplace(inode, pid);
  if (whole && others.size() < kMaxSockets) complete.insert(pid);
}

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
  std::erase_if(known_, [&](const auto& one) { return one.second.pid != 0 && pids.count(one.second.pid) == 0; });
}

void SocketProcesses::read_now() {
  const Duration before = thread_cpu();
  std::vector<std::int64_t> pids = processes_in(proc_);
  if (!pids.empty()) forget_ended(pids);  // empty: /proc could not be read
  Scan scan;
  {
    const Held lock(mutex_);
    scan.wanted = wanted_;
    scan.clients = clients_;
  }
  std::stable_partition(pids.begin(), pids.end(), [&scan](std::int64_t pid) { return contains(scan.clients, pid); });
  for (const std::int64_t pid : pids) {
    scan.read(proc_, pid);
    if (scan.done()) break;
  }
  for (const std::uint64_t inode : scan.wanted) scan.found.emplace(inode, 0);  // no process has it
  end_reading(thread_cpu() - before, &scan);
}

void SocketProcesses::end_reading(Duration cpu, const Scan* scan) {
  const Held lock(mutex_);
  reads_ = false;
  const Instant now = Clock::now();
  not_before_ = now + std::clamp(cpu * kShare, kMinPause, kMaxPause);
  if (scan != nullptr) keep(*scan, now);
}

void SocketProcesses::remember(std::uint64_t inode, std::int64_t pid, Instant now) {
  wanted_.erase(inode);
  known_.insert_or_assign(inode, Known{pid, now + kKnownFor});
}

// Known sockets of a process whose sockets were all read are closed if they were not among them; they would take the
// place of new ones.
void SocketProcesses::keep(const Scan& scan, Instant now) {
  std::erase_if(known_, [&](const auto& one) {
    const bool closed = scan.complete.count(one.second.pid) != 0 && scan.beside.count(one.first) == 0;
    return one.second.until <= now || closed;
  });
  if (known_.size() + scan.found.size() > kMaxSockets) known_.clear();
  for (const auto& [inode, pid] : scan.found) {
    remember(inode, pid, now);
    if (pid == 0 || contains(clients_, pid)) continue;
    if (clients_.size() == kMaxClients) clients_.erase(clients_.begin());
    clients_.push_back(pid);
  }
  for (const auto& [inode, pid] : scan.beside) {
    if (known_.size() >= kMaxSockets / 2) break;  // the rest is for those that are asked for
    remember(inode, pid, now);
  }
}

}  // namespace carpool::proxy::net
