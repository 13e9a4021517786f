#include "proxy/reload/file_watch.h"

#include <sys/inotify.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

namespace carpool::proxy {

namespace {
constexpr Duration kQuiet = std::chrono::milliseconds(200);  // editors and kubelets write in several steps
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE;
}  // namespace

FileWatch::FileWatch(exec::Loop& loop, Callback callback, void* owner)
    : loop_(loop), callback_(callback), owner_(owner), quiet_(exec::Timer::bind<&FileWatch::on_quiet>(loop, *this)) {}

Status FileWatch::watch(const std::vector<std::string>& files) {
  if (files == files_ && fd_) return Done{};
  files_ = files;
  seen_ = contents();
  if (fd_) loop_.unwatch(fd_.get(), key_);
  fd_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  std::set<std::string> directories;
  for (const std::string& file : files_) {
    const auto parent = std::filesystem::path(file).parent_path();
    directories.insert(parent.empty() ? "." : parent.string());
  }
  bool good = static_cast<bool>(fd_);
  for (const std::string& directory : directories) {
    good = good && ::inotify_add_watch(fd_.get(), directory.c_str(), kEvents) >= 0;
  }
  if (!good) {
    return Fault{FaultKind::internal, Side::self,
                 std::string("files are not watched: ") + std::strerror(errno)};  // NOLINT(concurrency-mt-unsafe)
  }
  Result<exec::WatchKey> key = loop_.watch(fd_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  return Done{};
}

void FileWatch::on_ready(exec::Ready) {
  std::array<char, 4096> events;
  while (::read(fd_.get(), events.data(), events.size()) > 0) {
  }
  quiet_.arm(loop_.now() + kQuiet);
}

void FileWatch::on_quiet() {
  exec::assume_on_loop();
  const std::size_t now = contents();
  if (now != looked_) {  // twice the same: nobody is in the middle of writing
    looked_ = now;
    return quiet_.arm(loop_.now() + kQuiet);
  }
  if (now == seen_) return;
  seen_ = now;
  callback_(owner_);
}

std::size_t FileWatch::contents() const {
  std::string all;
  for (const std::string& path : files_) {
    std::ifstream file(path, std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {}).append(1, '\0');
  }
  return std::hash<std::string>{}(all);
}

}  // namespace carpool::proxy
