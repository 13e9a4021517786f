#include "proxy/server/reload/file_watch.h"

#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

namespace carpool::proxy {

namespace {
constexpr Duration kDebounce = std::chrono::milliseconds(200);  // editors and kubelets write in several steps
constexpr Duration kAtMost = std::chrono::seconds(2);           // limit for a directory that keeps changing
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE;
}  // namespace

FileWatch::FileWatch(exec::Loop& loop, exec::Bound changed)
    : loop_(loop),
      changed_(changed),
      debounce_(exec::Timer::bind<&FileWatch::on_debounced>(loop, *this)),
      pause_(exec::Timer::bind<&FileWatch::on_pause_over>(loop, *this)),
      next_pause_(kFirstPause) {}

Status FileWatch::watch(const std::vector<std::string>& files, Digests in_force) {
  in_force_ = std::move(in_force);
  judged_ = in_force_;
  pause_.disarm();
  next_pause_ = kFirstPause;
  // The event for a change made after the files were read may have been compared with older contents, or may never have
  // arrived.
  debounce();
  if (files == files_ && fd_) return Done{};
  files_ = files;
  return watch_directories();
}

Status FileWatch::watch_directories() {
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
  debounce();
}

void FileWatch::debounce() {
  if (!until_) until_ = loop_.now() + kAtMost;
  debounce_.arm(std::min(loop_.now() + kDebounce, *until_));
}

void FileWatch::on_debounced() {
  exec::assume_on_loop();
  Digests now;
  for (const FileSnapshot& look : look_at(files_)) now.emplace_back(look.digest);
  const bool still_changing = now != looked_ && now != judged_;
  looked_ = now;
  if (still_changing && loop_.now() < *until_)
    return debounce();  // two equal digests in a row: no write in
                        // progress
  until_.reset();
  if (now == judged_) return;
  judged_ = std::move(now);
  pause_.disarm();
  next_pause_ = kFirstPause;
  if (judged_ != in_force_) changed_();
}

void FileWatch::try_again() {
  if (judged_ == in_force_ || pause_.armed()) return;
  pause_.arm(loop_.now() + next_pause_);
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
}

void FileWatch::on_pause_over() {
  changed_();
}

}  // namespace carpool::proxy
