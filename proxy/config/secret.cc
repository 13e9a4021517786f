#include "proxy/config/secret.h"

#include <string.h>  // NOLINT(modernize-deprecated-headers): explicit_bzero
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/open_to_read.h"

namespace carpool::proxy::config {
namespace {

Fault failed(const Secret& secret, const std::string& why) {
  return {FaultKind::internal, Side::self, secret.file + ' ' + why};
}

// Reads into memory that does not grow, so that no copy stays behind. Returns 0 or the system's error.
int fill(std::string& value, int file) {
  value.reserve(kMaxSecretLength + 1);
  value.resize(kMaxSecretLength + 1);
  std::size_t size = 0;
  while (size < value.size()) {
    const ssize_t bytes_read = ::read(file, value.data() + size, value.size() - size);
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read < 0) return errno;
    if (bytes_read == 0) break;
    size += static_cast<std::size_t>(bytes_read);
  }
  value.resize(size);
  return 0;
}

}  // namespace

void wipe(std::string& value) {
  ::explicit_bzero(value.data(), value.size());
  value.clear();
}

Result<std::string> value_of(const Secret& secret) {
  if (secret.file.empty()) {
    if (secret.text.size() > kMaxSecretLength) {
      return Fault{FaultKind::internal, Side::self, "is longer than " + std::to_string(kMaxSecretLength) + " bytes"};
    }
    return secret.text;
  }
  const auto system = [](int error) { return "cannot be read: " + std::generic_category().message(error); };
  const Result<Fd> file = open_to_read(secret.file);
  if (!file) return failed(secret, "cannot be read: " + file.fault().detail);
  std::string value;
  if (const int error = fill(value, file->get()); error != 0) return failed(secret, system(error));
  if (value.size() > kMaxSecretLength - std::min(kMaxSecretLength, secret.prefix.size())) {
    wipe(value);
    return failed(secret, "is longer than " + std::to_string(kMaxSecretLength) + " bytes");
  }
  const std::size_t end = value.find_last_not_of(" \t\r\n");
  value.resize(end == std::string::npos ? 0 : end + 1);
  if (value.empty()) return failed(secret, "is empty");
  value.insert(0, secret.prefix);  // fits into the reserved memory
  return value;
}

}  // namespace carpool::proxy::config
