#include "proxy/server/reload/file_snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/contents.h"
#include "base/fd.h"
#include "proxy/config/secret.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxBytes = std::size_t{16} * 1024 * 1024;  // larger files are compared only by their stamp

std::size_t mixed(std::size_t hash, std::int64_t value) {
  return (hash ^ static_cast<std::size_t>(value)) * std::size_t{0x100000001B3};
}

std::size_t stamp_of(const struct stat& status) {
  std::size_t hash =
      mixed(mixed(mixed(0, static_cast<std::int64_t>(status.st_dev)), static_cast<std::int64_t>(status.st_ino)),
            status.st_size);
  for (const timespec& time : {status.st_mtim, status.st_ctim}) hash = mixed(mixed(hash, time.tv_sec), time.tv_nsec);
  return hash;
}

FileSnapshot take_snapshot(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return {mixed(1, errno), 0};
  FileSnapshot snapshot{2, stamp_of(status)};
  if (!S_ISREG(status.st_mode)) return snapshot;
  std::string text(std::min(static_cast<std::size_t>(status.st_size) + 1, kMaxBytes), '\0');
  const std::optional<std::size_t> size = read_into(file.get(), text);
  snapshot.digest = !size || *size == kMaxBytes ? snapshot.stamp : digest_of({text.data(), *size});
  config::wipe(text);  // it may be a private key
  return snapshot;
}
}  // namespace

std::vector<FileSnapshot> take_snapshots(const std::vector<std::string>& files) {
  std::vector<FileSnapshot> snapshots;
  snapshots.reserve(files.size());
  for (const std::string& path : files) snapshots.push_back(take_snapshot(path));
  return snapshots;
}

Digests read_between(const std::vector<FileSnapshot>& before, const std::vector<FileSnapshot>& after) {
  Digests digests;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool same = i < after.size() && before[i].digest == after[i].digest && before[i].stamp == after[i].stamp;
    digests.push_back(same ? std::optional(before[i].digest) : std::nullopt);
  }
  return digests;
}

}  // namespace carpool::proxy
