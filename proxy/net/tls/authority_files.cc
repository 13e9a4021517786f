#include "proxy/net/tls/authority_files.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/fd.h"
#include "proxy/net/tls/certificate.h"

namespace carpool::proxy::tls {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kEverybodyReads = 0644;

Fault failed(const std::string& path, int error) {
  return {FaultKind::tls_protocol, Side::self, path + ": " + std::strerror(error)};  // NOLINT(concurrency-mt-unsafe)
}

// Returns 0 or the system's error.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done < 0 && errno != EINTR) return errno;
    if (done > 0) bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return ::fsync(file) == 0 ? 0 : errno;
}

// The bytes reach the disk before the name does.
Status replace(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());
  const Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly));
  if (!file) return failed(draft, errno);
  int error = write_all(file.get(), bytes);
  if (error == 0 && ::fchmod(file.get(), mode) != 0) error = errno;
  if (error == 0 && ::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Done{};
  ::unlink(draft.c_str());
  return failed(path, error);
}

}  // namespace

Status create_authority(const std::string& dir, const std::vector<std::string>& hosts, std::chrono::seconds life) {
  ERR_clear_error();
  const Certified made = make_authority(hosts, life);
  if (!made.certificate) {
    return Fault{FaultKind::tls_protocol, Side::self, dir + ": no authority was made: " + std::string(take_reason())};
  }
  std::string key = pem_of(made.key.get());
  Status written = replace(dir + "/ca.key", key, kOwnerOnly);
  OPENSSL_cleanse(key.data(), key.size());
  if (!written) return written;
  return replace(dir + "/ca.pem", pem_of(made.certificate.get()), kEverybodyReads);
}

}  // namespace carpool::proxy::tls
