#include "proxy/server/reload/file_monitor.h"

#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/repeat_interrupted.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr Duration kDebounce = std::chrono::milliseconds(200);  // editors and kubelets write in several steps
constexpr Duration kAtMost = std::chrono::seconds(2);           // limit for a directory that keeps changing
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kMaxPause = std::chrono::minutes(1);
// IN_ATTRIB: a file that could not be read may be readable now.
constexpr std::uint32_t kEntryEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB;
constexpr std::uint32_t kDirectoryEvents = IN_MOVE_SELF | IN_DELETE_SELF;
// After these, which are reported unasked, a watch may be gone, or the event that says so was lost.
constexpr std::uint32_t kWatchesLost = IN_Q_OVERFLOW | IN_UNMOUNT | IN_IGNORED;
constexpr int kMaxPasses = 3;

Fault not_watched(const std::string& what, int error) {
  return {FaultKind::internal, Side::self,
          "not all files are watched: " + what + ": " + std::generic_category().message(error)};
}
}  // namespace

FileMonitor::FileMonitor(exec::Loop& loop, exec::Bound changed)
    : loop_(loop),
      changed_(changed),
      debounce_(exec::Timer::bind<&FileMonitor::on_debounced>(loop, *this)),
      pause_(exec::Timer::bind<&FileMonitor::on_pause_over>(loop, *this)),
      next_pause_(kFirstPause) {}

Status FileMonitor::watch(const std::vector<std::string>& files, Digests in_force) {
  in_force_ = std::move(in_force);
  handled_ = in_force_;
  pause_.disarm();
  next_pause_ = kFirstPause;
  // The event for a change made after the files were read may have been compared with older contents, or may never have
  // arrived.
  debounce();
  files_ = files;
  if (!complete_) directories_.clear();
  return follow_paths();
}

// A link that is changed before its directory is watched causes no event, so the paths are followed until they stay
// the same.
Status FileMonitor::follow_paths() {
  Status watched = Done{};
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    WatchedDirectories wanted = watched_directories(files_);
    if (wanted == directories_) break;
    directories_ = std::move(wanted);
    watched = watch_directories();
    complete_ = static_cast<bool>(watched);
  }
  return watched;
}

// One directory that cannot be watched does not hinder the others.
Status FileMonitor::watch_directories() {
  if (fd_) loop_.unwatch(fd_.get(), key_);
  fd_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd_) return not_watched("inotify", errno);
  Result<exec::WatchKey> key = loop_.watch(fd_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  Status watched = Done{};
  for (const auto& [directory, events] : directories_) {
    const bool entries = events == DirectoryEvents::entries;
    // Two names may lead to the same directory: its events are added.
    const std::uint32_t mask = IN_MASK_ADD | kDirectoryEvents | (entries ? kEntryEvents : 0);
    if (::inotify_add_watch(fd_.get(), directory.c_str(), mask) >= 0) continue;
    // carpool needs no right to read a directory on the way to a file, only the directories of files and of links.
    if (entries && watched) watched = not_watched(directory, errno);
  }
  return watched;
}

void FileMonitor::on_ready(exec::Ready) {
  alignas(inotify_event) std::array<char, 4096> events;
  const auto read_events = [&] { return ::read(fd_.get(), events.data(), events.size()); };
  for (ssize_t size = 0; (size = repeat_interrupted(read_events)) > 0;) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      // Another directory may have the name. Watching the directories again cannot end here again: it replaces fd_.
      if ((event->mask & (kDirectoryEvents | kWatchesLost)) != 0) directories_.clear();
      at += sizeof(inotify_event) + event->len;
    }
  }
  debounce();
}

void FileMonitor::debounce() {
  if (!until_) until_ = loop_.now() + kAtMost;
  debounce_.arm(std::min(loop_.now() + kDebounce, *until_));
}

void FileMonitor::on_debounced() {
  exec::assume_on_loop();
  if (const Status followed = follow_paths(); !followed) log::warn("reload", followed.fault().detail);
  Digests now;
  for (const FileSnapshot& snapshot : take_snapshots(files_)) now.emplace_back(snapshot.digest);
  const bool still_changing = now != checked_ && now != handled_;
  checked_ = now;
  // Two equal digests in a row: no write is in progress.
  if (still_changing && loop_.now() < *until_) return debounce();
  until_.reset();
  if (now == handled_) return;
  handled_ = std::move(now);
  pause_.disarm();
  next_pause_ = kFirstPause;
  if (handled_ != in_force_) changed_();
}

void FileMonitor::try_again() {
  if (handled_ == in_force_ || pause_.armed()) return;
  pause_.arm(loop_.now() + next_pause_);
  next_pause_ = std::min(2 * next_pause_, kMaxPause);
}

void FileMonitor::on_pause_over() {
  changed_();
}

}  // namespace carpool::proxy
