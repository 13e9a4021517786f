#include "proxy/net/tls/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "base/repeat_interrupted.h"

namespace carpool::proxy::tls {
namespace {

constexpr mode_t kDraftMode = 0600;

Fault failed(const std::string& path, int error) {
  return {FaultKind::tls_protocol, Side::self, path + ": " + std::strerror(error)};  // NOLINT(concurrency-mt-unsafe)
}

// Returns 0 or the system's error.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = repeat_interrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return ::fsync(file) == 0 ? 0 : errno;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());
  const Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kDraftMode));
  if (!file) return failed(draft, errno);
  int error = write_all(file.get(), bytes);
  if (error == 0 && ::fchmod(file.get(), mode) != 0) error = errno;
  if (error == 0 && ::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Done{};
  ::unlink(draft.c_str());
  return failed(path, error);
}

}  // namespace carpool::proxy::tls
