#include "proxy/net/tls/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/open_to_read.h"

namespace carpool::proxy::tls {

namespace {
constexpr std::size_t kPiece = std::size_t{64} << 10;

Fault unreadable(const std::string& path, const std::string& why, bool may_pass = false) {
  return {may_pass ? FaultKind::budget : FaultKind::tls_protocol, Side::self, path + ": " + why};
}
}  // namespace

Result<std::string> read_file(const std::string& path) {
  const Result<Fd> file = open_to_read(path);
  if (!file) return unreadable(path, file.fault().detail, file.fault().kind == FaultKind::budget);
  std::string bytes;
  while (bytes.size() <= kMaxFile) {
    const std::size_t had = bytes.size();
    bytes.resize(had + kPiece);
    const ssize_t bytes_read = ::read(file->get(), bytes.data() + had, kPiece);
    bytes.resize(had + static_cast<std::size_t>(bytes_read > 0 ? bytes_read : 0));
    if (bytes_read == 0) return bytes;
    if (bytes_read < 0 && errno != EINTR) break;
  }
  if (bytes.size() > kMaxFile) return unreadable(path, "is larger than 16 MiB");
  const int error = errno;
  return unreadable(path, std::strerror(error), !describes_path(error));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace carpool::proxy::tls
